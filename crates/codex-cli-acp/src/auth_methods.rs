//! Login methods that the agent offers to editors.

use serde_json::{Value, json};

/// Id of the login with an account of `ChatGPT`.
pub const CHATGPT: &str = "chatgpt";
/// Ids of the logins by an API key, and the variable that each takes it from.
pub const API_KEYS: [(&str, &str); 2] =
    [("codex-api-key", "CODEX_API_KEY"), ("openai-api-key", "OPENAI_API_KEY")];

/// Login methods, as the answer to `initialize` lists them.
pub fn list() -> Value {
    let chatgpt = json!({
        "id": CHATGPT, "name": "ChatGPT", "description": "Log in with a ChatGPT account, in the browser",
    });
    let keys = API_KEYS.map(|(id, variable)| {
        let name = format!("API key ({variable})");
        json!({ "id": id, "name": name, "description": format!("Use the key in the variable {variable}") })
    });
    std::iter::once(chatgpt).chain(keys).collect()
}
