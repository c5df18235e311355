//! Login methods that the agent offers to editors.

use serde_json::{Value, json};

/// Id of the login with a `ChatGPT` account.
pub const CHATGPT: &str = "chatgpt";
/// Ids of the logins by API key, each with the environment variable that has the key.
pub const API_KEYS: [(&str, &str); 2] =
    [("codex-api-key", "CODEX_API_KEY"), ("openai-api-key", "OPENAI_API_KEY")];

/// Lists the login methods for the answer to `initialize`.
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
