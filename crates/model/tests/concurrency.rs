//! The limit of concurrent requests. A test program of its own, since all tests of a process share the limit.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use model::{
    EditScope, Error, GenerationRequest, LineLoss, Settings, generate,
    scripted::{ScriptedModel, ScriptedReply},
};

#[test]
fn a_request_beyond_the_limit_is_refused() {
    const REQUESTS_MAX: usize = 32;
    let server = ScriptedModel::start(vec![ScriptedReply::IsSilent; REQUESTS_MAX]).unwrap();
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
        let request = GenerationRequest {
            path,
            text,
            instruction,
            scope: EditScope::File,
            loss: LineLoss::Refused,
        };
        generate(&settings, &request, &|_| Ok(()), &|| is_over.load(Ordering::Relaxed), &|_| {})
    };
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..REQUESTS_MAX).map(|_| scope.spawn(ask)).collect();
        while server.received().len() < REQUESTS_MAX {
            thread::yield_now();
        }
        assert_eq!(ask(), Err(Error::Busy { running: REQUESTS_MAX }));
        is_over.store(true, Ordering::Relaxed);
        for one in waiting {
            assert_eq!(one.join().unwrap(), Err(Error::Cancelled));
        }
    });
    // Their slots are free again once their connections have ended.
    (0..REQUESTS_MAX).for_each(|_| server.wait_until_left());
    is_over.store(false, Ordering::Relaxed);
    while let Err(error) = ask() {
        if error == (Error::ServerFailed { status: 500 }) {
            return;
        }
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    }
}
