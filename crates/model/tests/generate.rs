//! A model is asked over the wire, by a server that says what the test wants.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{cell::RefCell, env, net::TcpListener, process::Command, thread, time::Duration};

use model::{
    AnswerError, EditScope, Error, GeneratedText, GenerationRequest, LineLoss, Settings, generate,
    scripted::{ScriptedModel, ScriptedReply, completion},
};

const KEY: &str = "the-secret-key";
const TEXT: &str = "def f():\n    return 'the contents of the file'\n";
const RIGHT: &str = "```\ndef g():\n    return 1\n```";

fn settings(base_url: &str, timeout: &str) -> Settings {
    Settings::from_variables(|name| match name.strip_prefix("FILE_EDITOR_LLM_").unwrap() {
        "BASE_URL" => Some(base_url.to_owned()),
        "MODEL" => Some("scripted".to_owned()),
        "API_KEY" => Some(KEY.to_owned()),
        _ => Some(timeout.to_owned()),
    })
    .unwrap()
    .unwrap()
}

fn request() -> GenerationRequest<'static> {
    GenerationRequest {
        path: "f.py",
        text: TEXT,
        instruction: "Rename f to g",
        scope: EditScope::File,
        loss: LineLoss::Refused,
    }
}

/// The result of these replies, and the server that sent them.
fn play(turns: Vec<ScriptedReply>) -> (Result<GeneratedText, Error>, ScriptedModel) {
    let server = ScriptedModel::start(turns).unwrap();
    let outcome =
        generate(&settings(&server.base_url(), "60"), &request(), &|_| Ok(()), &|| false, &|_| {});
    if let Err(error) = &outcome {
        let told = format!("{error} {error:?}");
        assert!(!told.contains(KEY) && !told.contains("contents of the file"), "{told}");
    }
    (outcome, server)
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Says(text.to_owned())
}

/// The end of it, and how often the model was asked.
fn check(turns: Vec<ScriptedReply>, expected: Result<&str, Error>, asked: usize) {
    let shown = format!("{:.300}", format!("{turns:?}"));
    let (outcome, server) = play(turns);
    let expected = expected.map(|text| GeneratedText { text: text.to_owned(), part: None });
    assert_eq!(outcome, expected, "{shown}");
    assert_eq!(server.received().len(), asked, "{shown}");
}

fn refused(reason: AnswerError) -> Result<&'static str, Error> {
    Err(Error::UnusableAnswer { reason })
}

const NEW: &str = "def g():\n    return 1\n";

// --- answers

#[test]
fn the_block_of_the_answer_is_the_new_text() {
    check(vec![says(RIGHT)], Ok(NEW), 1);
    check(vec![says(&format!("Sure:\n\n{RIGHT}\n\nI renamed it.\n"))], Ok(NEW), 1);
}

#[test]
fn an_answer_that_cannot_be_used_may_be_made_good_once() {
    for wrong in ["no block", "```\na\n```\n```\nb\n```", "```\n# ...\n```", "```\nx", "```\n```"] {
        check(vec![says(wrong), says(RIGHT), says("never said")], Ok(NEW), 2);
    }
}

#[test]
fn two_answers_that_cannot_be_used_are_enough() {
    let no_block = || says("I would rather not");
    check(vec![no_block(), no_block(), says(RIGHT)], refused(AnswerError::NoBlock), 2);
    let two = || says("```\na\n```\n```\nb\n```");
    check(
        vec![no_block(), two(), says(RIGHT)],
        refused(AnswerError::SeveralBlocks { count: 2 }),
        2,
    );
    let lazy = || says("```\n# ... existing code ...\nx\n```");
    check(vec![lazy(), lazy()], refused(AnswerError::Elision { line: 1 }), 2);
    let short = || says("```\nx\n```");
    check(vec![short(), short()], refused(AnswerError::Vanished { before: 2, after: 1 }), 2);
    let (outcome, _server) = play(vec![no_block(), no_block()]);
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "the model's answer cannot be used: it has no fenced block"
    );
}

#[test]
fn what_the_caller_objects_to_is_told_to_the_model() {
    let server = ScriptedModel::start(vec![says("```\nx(\ny\n```"), says(RIGHT)]).unwrap();
    let check = |text: &str| {
        if text.contains("x(") { Err("line 1: `(` is never closed".to_owned()) } else { Ok(()) }
    };
    let heard = RefCell::new(Vec::new());
    let progress = |word: &str| heard.borrow_mut().push(word.to_owned());
    let outcome =
        generate(&settings(&server.base_url(), "60"), &request(), &check, &|| false, &progress);
    assert_eq!(outcome.unwrap().text, NEW);
    let asked = server.received();
    let again: serde_json::Value = serde_json::from_str(&asked[1].body).unwrap();
    assert_eq!(again["messages"][2]["role"], "assistant");
    assert_eq!(again["messages"][2]["content"], "```\nx(\ny\n```");
    let told = again["messages"][3]["content"].as_str().unwrap();
    assert!(told.contains("line 1: `(` is never closed"), "{told}");
    assert_eq!(
        heard.into_inner(),
        [
            "asking scripted",
            "asking scripted again, since its answer cannot be used: line 1: `(` is never closed"
        ]
    );
    let server =
        ScriptedModel::start(vec![says("```\nx(\ny\n```"), says("```\nx(\nz\n```")]).unwrap();
    let outcome =
        generate(&settings(&server.base_url(), "60"), &request(), &check, &|| false, &|_| {});
    let reason = AnswerError::Check("line 1: `(` is never closed".to_owned());
    assert_eq!(outcome, Err(Error::UnusableAnswer { reason }));
}

// --- the request

#[test]
fn the_request_is_what_such_servers_take() {
    let (_, server) = play(vec![says(RIGHT)]);
    let asked = &server.received()[0];
    let head = asked.head.to_lowercase();
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    assert!(head.contains("authorization: bearer the-secret-key"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!(body["model"], "scripted");
    assert_eq!(body["temperature"], 0);
    assert_eq!(body["stream"], false);
    assert_eq!(body["max_tokens"], 4096 + TEXT.len() / 2);
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["messages"][1]["role"], "user");
    assert_eq!(body.as_object().unwrap().len(), 5);
    assert!(!asked.body.contains(KEY));
}

#[test]
fn the_path_is_added_to_the_address_as_given() {
    for (base, path) in [
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1//", "/v1/chat/completions"),
        ("/api/v3/openai/", "/api/v3/openai/chat/completions"),
    ] {
        let server = ScriptedModel::start(vec![says(RIGHT)]).unwrap();
        let url = server.base_url().replace("/v1", base);
        generate(&settings(&url, "60"), &request(), &|_| Ok(()), &|| false, &|_| {}).unwrap();
        let head = &server.received()[0].head;
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{base}: {head}");
    }
}

#[test]
fn settings_a_model_does_not_take_are_left_out() {
    let unknown = || ScriptedReply::Answers {
        status: 400,
        headers: Vec::new(),
        body: r#"{"error":{"message":"Unsupported parameter: 'max_tokens'"}}"#.to_owned(),
    };
    let (outcome, server) = play(vec![unknown(), says(RIGHT)]);
    assert_eq!(outcome.unwrap().text, NEW);
    let body: serde_json::Value = serde_json::from_str(&server.received()[1].body).unwrap();
    assert_eq!(
        body.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["model", "messages", "stream"]
    );
    check(vec![unknown(), unknown(), says(RIGHT)], Err(Error::Rejected { status: 400 }), 2);
}

/// Bodies of real servers: llama.cpp, vLLM, a hosted one.
#[test]
fn a_text_that_is_too_long_is_told_from_what_else_is_wrong() {
    let objects = |body: &str| ScriptedReply::Answers {
        status: 400,
        headers: Vec::new(),
        body: format!(r#"{{"error":{{"code":400,{body}}}}}"#),
    };
    for body in [
        r#""message":"request (5601 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_ctx":2048"#,
        r#""message":"This model's maximum context length is 4096 tokens. However, you requested 5601 tokens in the messages.""#,
        r#""message":"Please reduce the length of the messages.","code":"context_length_exceeded""#,
    ] {
        check(vec![objects(body), says(RIGHT)], Err(Error::TooLong), 1);
    }
    // Too long with the answer that we would take: a shorter one may do.
    let both = r#""message":"This model's maximum context length is 4096 tokens. However, you requested 4296 tokens (200 in the messages, 4096 in the completion).""#;
    check(vec![objects(both), says(RIGHT)], Ok(NEW), 2);
}

/// One is set for every program of a machine, and would see the code.
#[test]
fn a_proxy_is_not_asked() {
    let mut alone = Command::new(env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        alone.env(name, "http://127.0.0.1:1");
    }
    alone.args(["--exact", "the_block_of_the_answer_is_the_new_text"]);
    let outcome = alone.output().unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    assert!(String::from_utf8_lossy(&outcome.stdout).contains("1 passed"));
}

// --- servers that fail

#[test]
fn a_status_that_says_no_is_told_in_its_own_words() {
    let told = |status, error: Error, words: &str| {
        assert_eq!(error.to_string(), words);
        check(vec![ScriptedReply::fails(status), says(RIGHT)], Err(error), 1);
    };
    for status in [401, 403] {
        let words =
            format!("the model's server denied access ({status}): check FILE_EDITOR_LLM_API_KEY");
        told(status, Error::KeyRefused { status }, &words);
    }
    told(
        404,
        Error::NotFound,
        "the model's server does not know the address or the model (404): check FILE_EDITOR_LLM_BASE_URL and \
         FILE_EDITOR_LLM_MODEL",
    );
    let retry_after = None;
    told(429, Error::TooManyRequests { retry_after }, "the model's server is busy (429)");
    told(500, Error::ServerFailed { status: 500 }, "the model's server failed (500)");
    told(503, Error::ServerFailed { status: 503 }, "the model's server failed (503)");
    for status in [400, 413, 422] {
        check(vec![ScriptedReply::fails(status)], Err(Error::Rejected { status }), 1);
    }
}

#[test]
fn how_long_to_wait_is_passed_on() {
    let busy = |value: &str| ScriptedReply::Answers {
        status: 429,
        headers: vec![("Retry-After".to_owned(), value.to_owned())],
        body: format!("{{\"error\":\"{KEY}\"}}"),
    };
    let (outcome, _server) = play(vec![busy("17")]);
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "the model's server is busy (429): try again in 17 s"
    );
    for odd in ["Fri, 31 Dec 1999 23:59:59 GMT", "-1", "99999999999999999999999"] {
        check(vec![busy(odd)], Err(Error::TooManyRequests { retry_after: None }), 1);
    }
}

#[test]
fn nobody_is_followed_elsewhere() {
    let elsewhere = ScriptedModel::start(vec![says(RIGHT)]).unwrap();
    for status in [301, 302, 303, 307, 308] {
        let turn = ScriptedReply::Answers {
            status,
            headers: vec![(
                "Location".to_owned(),
                format!("{}/chat/completions", elsewhere.base_url()),
            )],
            body: String::new(),
        };
        check(vec![turn], Err(Error::Redirected { status }), 1);
    }
    assert_eq!(elsewhere.received(), []);
}

#[test]
fn an_answer_that_is_no_completion_is_refused() {
    let body = |body: &str, error: Error| {
        check(vec![ScriptedReply::answers(body), says(RIGHT)], Err(error), 1);
    };
    body("<!DOCTYPE html><title>Welcome</title>", Error::NotJson);
    body("{\"choices\": nothing}", Error::NotJson);
    body("{}", Error::NotACompletion);
    body("[]", Error::NotACompletion);
    body("null", Error::NotACompletion);
    body(&format!("{{\"error\": {{\"message\": \"{KEY}\"}}}}"), Error::NotACompletion);
    body("{\"choices\": \"all\"}", Error::NotACompletion);
    body("{\"choices\": [{}]}", Error::NotACompletion);
    body("{\"choices\": [{\"message\": {\"content\": 7}}]}", Error::NotACompletion);
    body("{\"choices\": []}", Error::NoChoice);
    body("{\"choices\": [{\"message\": {}}]}", Error::NoText);
    body("{\"choices\": [{\"message\": {\"content\": null}}]}", Error::NoText);
    body("{\"choices\": [{\"message\": {\"content\": \" \\n\"}}]}", Error::NoText);
    body("{\"choices\": [{\"message\": {\"refusal\": \"no\"}}]}", Error::Declined);
    body(
        "{\"choices\": [{\"finish_reason\": \"content_filter\", \"message\": {\"content\": \"x\"}}]}",
        Error::Declined,
    );
    let whole = completion(RIGHT, "stop");
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        body(&whole[..length], Error::Interrupted);
    }
}

#[test]
fn an_answer_that_was_cut_short_is_not_used() {
    check(vec![ScriptedReply::IsCutShort(RIGHT.to_owned()), says(RIGHT)], Err(Error::CutShort), 1);
}

fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").into_bytes()
}

#[test]
fn hostile_answers_harm_nobody() {
    let sends =
        |bytes: Vec<u8>, error: Error| check(vec![ScriptedReply::Sends(bytes)], Err(error), 1);
    let with_length =
        |body: &[u8]| [head(&format!("Content-Length: {}", body.len())), body.to_vec()].concat();
    let whole = completion(RIGHT, "stop");
    // The connection ends before the answer does.
    sends(Vec::new(), Error::Interrupted);
    sends(b"HTTP/1.1 200 OK\r\nContent-".to_vec(), Error::Interrupted);
    sends([head("Content-Length: 9999"), whole.clone().into_bytes()].concat(), Error::Interrupted);
    sends([head("Transfer-Encoding: chunked"), b"ff\r\n{".to_vec()].concat(), Error::Interrupted);
    sends(
        [head("Connection: close"), whole.as_bytes()[..50].to_vec()].concat(),
        Error::Interrupted,
    );
    // It is not HTTP.
    sends(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec(), Error::NotHttp);
    sends(vec![0; 5000], Error::NotHttp);
    sends([b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 100_000]].concat(), Error::NotHttp);
    sends([head("Transfer-Encoding: chunked"), b"zz\r\n".to_vec()].concat(), Error::NotHttp);
    // It is too much of something.
    let deep = |open: &str| format!("{{\"extra\": {}", open.repeat(900_000 / open.len()));
    sends(with_length(deep("[").as_bytes()), Error::Interrupted);
    sends(with_length(deep("{\"a\":").as_bytes()), Error::Interrupted);
    let nested = format!("{{\"choices\": {}", "[".repeat(900_000));
    sends(with_length(nested.as_bytes()), Error::NotACompletion);
    let large = completion(&"x".repeat(2 << 20), "stop");
    sends(with_length(large.as_bytes()), Error::Oversized { limit: 1 << 20 });
    let chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let chunked = [head("Transfer-Encoding: chunked"), chunk.into_bytes()].concat();
    sends(chunked, Error::Oversized { limit: 1 << 20 });
    // It is not text.
    let mut broken = whole.into_bytes();
    let at = broken.iter().position(|byte| *byte == b'g').unwrap();
    broken[at] = 0xff;
    sends(with_length(&broken), Error::NotJson);
    sends(with_length(&[0x1f, 0x8b, 8, 0, 0]), Error::NotJson);
}

#[test]
fn a_text_of_almost_any_size_is_read() {
    let text = "x".repeat(900_000);
    check(vec![says(&format!("```\n{text}\ny\n```"))], Ok(&format!("{text}\ny\n")), 1);
    let chunked = {
        let whole = completion(RIGHT, "stop");
        let (first, rest) = whole.split_at(77);
        format!("{:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", first.len(), rest.len())
    };
    check(
        vec![ScriptedReply::Sends(
            [head("Transfer-Encoding: chunked"), chunked.into_bytes()].concat(),
        )],
        Ok(NEW),
        1,
    );
}

#[test]
fn nobody_at_the_address_is_told() {
    let ask = |url: &str| {
        generate(&settings(url, "60"), &request(), &|_| Ok(()), &|| false, &|_| {}).unwrap_err()
    };
    let told = ask("http://127.0.0.1:1").to_string();
    assert!(told.starts_with("the model cannot be reached: "), "{told}");
    // One that speaks no TLS.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        use std::io::Write as _;
        let (mut connection, _) = listener.accept().unwrap();
        connection.write_all(b"HTTP/1.1 400 Bad GenerationRequest\r\n\r\n").unwrap();
    });
    let error = ask(&format!("https://{address}"));
    assert!(matches!(error, Error::NotSecure { .. } | Error::Interrupted), "{error:?}");
}

// --- time

#[test]
fn a_model_that_says_nothing_is_not_waited_for_longer_than_was_set() {
    let half = [head("Content-Length: 9999"), b"{\"choices\"".to_vec()].concat();
    for turn in [ScriptedReply::IsSilent, ScriptedReply::SendsAndWaits(half)] {
        let server = ScriptedModel::start(vec![turn]).unwrap();
        let settings = settings(&server.base_url(), "1");
        let outcome = generate(&settings, &request(), &|_| Ok(()), &|| false, &|_| {});
        assert_eq!(outcome, Err(Error::TimedOut { seconds: 1 }));
        server.wait_until_left();
    }
}

#[test]
fn a_slow_model_is_waited_for() {
    let after = Duration::from_millis(200);
    check(vec![ScriptedReply::SaysSlowly { text: RIGHT.to_owned(), after }], Ok(NEW), 1);
}

#[test]
fn a_cancellation_is_heard_and_ends_the_connection() {
    let half = [head("Content-Length: 9999"), b"{\"choices\"".to_vec()].concat();
    for turn in [ScriptedReply::IsSilent, ScriptedReply::SendsAndWaits(half)] {
        let server = ScriptedModel::start(vec![turn]).unwrap();
        let settings = settings(&server.base_url(), "3600");
        // The server has the whole question by then, and would take an hour.
        let is_asked = || !server.received().is_empty();
        let outcome = generate(&settings, &request(), &|_| Ok(()), &is_asked, &|_| {});
        assert_eq!(outcome, Err(Error::Cancelled));
        server.wait_until_left();
    }
}

#[test]
fn nobody_is_asked_after_a_cancellation() {
    let server = ScriptedModel::start(vec![says("no block"), says(RIGHT)]).unwrap();
    let settings = settings(&server.base_url(), "60");
    assert_eq!(
        generate(&settings, &request(), &|_| Ok(()), &|| true, &|_| {}),
        Err(Error::Cancelled)
    );
    assert_eq!(server.received(), []);
    let once =
        generate(&settings, &request(), &|_| Ok(()), &|| !server.received().is_empty(), &|_| {});
    assert_eq!(once, Err(Error::Cancelled));
    assert_eq!(server.received().len(), 1);
}
