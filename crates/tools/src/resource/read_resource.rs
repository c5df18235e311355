//! `resources/read`: the whole text of one file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::uri;
use crate::store_error::FileAction;
use crate::text_file::{self, Loaded};
use crate::{ArgumentError, Block, Context, Effect, Failure, Tool, ToolOutput};

/// Read a text file, exactly as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadResource {
    /// URI of the file
    uri: String,
}

impl Tool for ReadResource {
    const NAME: &'static str = "resources/read";
    const TITLE: &'static str = "Read resource";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Resources;

    fn check(&self) -> Vec<ArgumentError> {
        uri::path_of(&self.uri).err().into_iter().collect()
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.uri]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let Loaded { text, .. } =
            text_file::load(&super::path(&self.uri), cx, FileAction::ReadResource)?;
        let whole = 0..text.as_str().len();
        Ok(ToolOutput { blocks: vec![Block::of_text(text, whole)], ..ToolOutput::default() })
    }
}
