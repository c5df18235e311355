//! The dictionary of messages, from which the fuzzer takes words.

use std::fs;

#[test]
fn dictionary_of_messages_names_every_tool() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../dictionaries/messages.dict");
    let dictionary = fs::read_to_string(path).expect("the dictionary");
    let words: Vec<&str> = dictionary.lines().collect();
    for tool in tools::agent_tools() {
        let word = format!("{:?}", tool.name);
        assert!(words.contains(&word.as_str()), "add {word} to fuzz/dictionaries/messages.dict");
    }
}
