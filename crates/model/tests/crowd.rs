//! How many may ask at once. On its own, since all tests of a process share the places there are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use model::{
    Error, Loss, Request, Scope, Settings, generate,
    scripted::{ScriptedModel, Turn},
};

#[test]
fn who_comes_when_all_places_are_taken_is_told_so() {
    const PLACES: usize = 32;
    let server = ScriptedModel::start(vec![Turn::IsSilent; PLACES]).unwrap();
    let settings = Settings::from_variables(|name| match name {
        "FILE_EDITOR_LLM_BASE_URL" => Some(server.base_url()),
        "FILE_EDITOR_LLM_MODEL" => Some("scripted".to_owned()),
        _ => None,
    })
    .unwrap()
    .unwrap();
    let is_over = AtomicBool::new(false);
    let ask = || {
        let (path, text, instruction) = ("a", "a\n", "b");
        let request = Request { path, text, instruction, scope: Scope::File, loss: Loss::Refused };
        generate(&settings, &request, &|_| Ok(()), &|| is_over.load(Ordering::Relaxed), &|_| {})
    };
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..PLACES).map(|_| scope.spawn(ask)).collect();
        while server.asked().len() < PLACES {
            thread::yield_now();
        }
        assert_eq!(ask(), Err(Error::Busy { running: PLACES }));
        is_over.store(true, Ordering::Relaxed);
        for one in waiting {
            assert_eq!(one.join().unwrap(), Err(Error::Cancelled));
        }
    });
    // Their places are free again once their connections have ended.
    (0..PLACES).for_each(|_| server.wait_until_left());
    is_over.store(false, Ordering::Relaxed);
    while let Err(error) = ask() {
        if error == (Error::ServerFailed { status: 500 }) {
            return;
        }
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    }
}
