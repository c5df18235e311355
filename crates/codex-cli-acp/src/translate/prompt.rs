//! The content blocks of a prompt as input for Codex.

use serde_json::{Value, json};

use super::json::{fenced, text};

/// Converts the blocks of `session/prompt` to the `input` of a turn. An unsupported block is an error that says what to
/// do instead.
pub fn prompt(blocks: &[Value]) -> Result<Vec<Value>, String> {
    if blocks.is_empty() {
        return Err("The prompt is empty: send at least one block".into());
    }
    blocks.iter().map(input).collect()
}

fn input(block: &Value) -> Result<Value, String> {
    let kind = text(block, "type").unwrap_or_default();
    match kind {
        "text" => Ok(text_content(block["text"].as_str().unwrap_or_default())),
        "image" => match (text(block, "data"), text(block, "mimeType"), text(block, "uri")) {
            (Some(data), mime, _) => Ok(image(mime.unwrap_or("image/png"), data)),
            (None, _, Some(uri)) if uri.starts_with("http") => {
                Ok(json!({"type": "image", "url": uri}))
            }
            _ => Err("An image has no data: send it as base64 in `data`".into()),
        },
        "resource_link" => {
            let uri =
                text(block, "uri").ok_or("A resource link has no `uri`: say what it links")?;
            Ok(text_content(&format!("[@{}]({uri})", text(block, "name").unwrap_or(uri))))
        }
        "resource" => resource(&block["resource"]),
        "audio" => Err("Audio is not supported: send the words as text".into()),
        _ => Err(format!("Blocks of type `{kind}` are not supported: send text")),
    }
}

fn resource(resource: &Value) -> Result<Value, String> {
    let uri = text(resource, "uri").unwrap_or("a resource");
    if let Some(contents) = resource["text"].as_str() {
        return Ok(text_content(&format!("Contents of {uri}:\n{}", fenced(contents))));
    }
    match (text(resource, "blob"), text(resource, "mimeType")) {
        (Some(blob), Some(mime)) if mime.starts_with("image/") => Ok(image(mime, blob)),
        _ => Err(format!("The resource {uri} is neither text nor an image: link it instead")),
    }
}

fn text_content(text: &str) -> Value {
    json!({"type": "text", "text": text, "text_elements": []})
}

fn image(mime: &str, data: &str) -> Value {
    json!({"type": "image", "url": format!("data:{mime};base64,{data}")})
}
