//! Somebody types while the model edits: what was typed is there afterwards, or it is said that it may not be.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::Scenario;
use super::editor::{Buffers, Manners, Moment};
use super::mind::{BOTH, CLASSIC};
use super::stage::Stage;
use crate::codex::{answers, ensure};
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "what is typed at any moment of an edit is kept, but for the one before the write",
        minds: CLASSIC,
        play: any_moment,
    },
    Scenario { name: "who types without a pause is not written over", minds: BOTH, play: restless },
    Scenario { name: "what was typed over is not edited", minds: BOTH, play: typed_over },
];

const OLD: &str = "first\nmiddle\nlast\n";
const TYPED: &str = "typed\n";

/// What a person did, and what came after it.
#[derive(Default)]
struct Typist {
    moments: usize,
    types_at: usize,
    typed: bool,
    /// The editor was asked for its text after that, and before the write came.
    noticed: bool,
    written: bool,
}

impl Typist {
    fn act(&mut self, path: &Path, moment: Moment, buffers: &mut Buffers) {
        if !moment.is_about_files() {
            return;
        }
        match moment {
            Moment::Heard(method) if self.typed && !self.written => {
                self.noticed |= method == "fs/read_text_file";
            }
            Moment::Answering("fs/write_text_file") => self.written = true,
            _ => {}
        }
        if self.moments == self.types_at
            && let Some(text) = buffers.get_mut(path)
        {
            text.push_str(TYPED);
            self.typed = true;
            // Behind the write nothing can be lost.
            self.noticed |= self.written;
        }
        self.moments += 1;
    }
}

/// The same edit again and again, with a person who types at another moment each time, until there is none left.
fn any_moment(stage: &mut Stage) -> Outcome<()> {
    const TURNS: usize = 40;
    stage.put("a.txt", OLD)?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "middle", "new_string": "edited" });
    let mut script = stage.script();
    for _ in 0..TURNS {
        script = script
            .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
            .say("Done.");
    }
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.set_mode("full-access")?;
    let (mut kept, mut lost) = (0, 0);
    for turn in 0..TURNS {
        talk.editor.open(&path, OLD);
        let typist = Arc::new(Mutex::new(Typist { types_at: turn, ..Typist::default() }));
        let (at, person) = (path.clone(), typist.clone());
        talk.editor.behave(|manners| {
            manners.person = Box::new(move |moment, buffers| {
                let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
                person.act(&at, moment, buffers);
            });
        });
        talk.work()?;
        let typist = typist.lock().unwrap_or_else(PoisonError::into_inner);
        if !typist.typed {
            // All moments of the edit have had their turn.
            ensure(kept > 3 && lost > 0, || {
                format!("{kept} kept and {lost} lost: too few to tell")
            })?;
            talk.close()?;
            // What came just after the write is seen by reading back.
            let requests = stage.model()?.requests();
            let told = requests.last().map(answers).unwrap_or_default().concat();
            let noticed = told.contains("another program changed the file");
            return ensure(noticed, || format!("nobody was noticed: {told}"));
        }
        let buffer = talk.editor.buffer(&path).unwrap_or_default();
        ensure(buffer.contains("edited"), || format!("typing at moment {turn}: not edited"))?;
        match buffer.contains(TYPED) {
            true => kept += 1,
            // In the one window that an editor leaves open.
            false if !typist.noticed => lost += 1,
            false => {
                let what = format!("lost what was typed at moment {turn}: {buffer:?}");
                return Err(talk.editor.wrong(&what));
            }
        }
    }
    Err(Trouble::Wrong(format!("an edit is more than {TURNS} moments long")))
}

/// A person who types at every moment: the edit is given up, and the model is told.
fn restless(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", OLD)?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "middle", "new_string": "edited" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .say("Done.");
    stage.think(script)?;
    let (at, mut typed) = (path.clone(), 0);
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    let restless = Manners {
        person: Box::new(move |_, buffers| {
            if let Some(text) = buffers.get_mut(&at) {
                typed += 1;
                let _ = writeln!(text, "typed {typed}");
                *counted.lock().unwrap_or_else(PoisonError::into_inner) = typed;
            }
        }),
        ..Manners::default()
    };
    let talk = stage.open(restless, &[])?;
    // Nobody is asked: what a person agreed to would not be there any more.
    talk.set_mode("full-access")?;
    talk.editor.open(&path, OLD);
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    talk.close()?;
    let typed = *count.lock().unwrap_or_else(PoisonError::into_inner);
    let lost = (1..=typed).filter(|n| !buffer.contains(&format!("typed {n}\n"))).count();
    let requests = stage.model()?.requests();
    let told = requests.last().map(answers).unwrap_or_default().concat();
    let whole = lost == 0 && !buffer.contains("edited") && told.contains("nothing was written");
    ensure(whole, || {
        format!("{lost} of {typed} lost, and the model was told {told:?}\nthe buffer is {buffer:?}")
    })
}

/// What the model knows is no longer there when its edit comes.
fn typed_over(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", OLD)?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "middle", "new_string": "edited" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .say("Done.");
    stage.think(script)?;
    let at = path.clone();
    // Just after the first look, which is what a person is asked about.
    let (mut looks, gone) = (0, OLD.replace("middle", "mine"));
    let typed = gone.clone();
    let person = Manners {
        person: Box::new(move |moment, buffers| {
            if let Moment::Answered("fs/read_text_file") = moment {
                looks += 1;
                if looks == 1 {
                    buffers.insert(at.clone(), typed.clone());
                }
            }
        }),
        ..Manners::default()
    };
    let talk = stage.open(person, &[])?;
    talk.editor.open(&path, OLD);
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    let wire = talk.close()?;
    ensure(buffer == gone, || format!("the buffer is {buffer:?}"))?;
    let failed = wire.calls().iter().all(|call| call.state["status"] == "failed");
    ensure(failed, || "the edit was said to be made".into())
}
