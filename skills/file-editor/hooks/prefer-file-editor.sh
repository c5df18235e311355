#!/bin/sh
# A hook for Claude Code, run before its own file tools: they are refused, and the agent is told which to use instead.
# It reads what is to be done as JSON on stdin, and answers as JSON. In settings.json:
#
#   "hooks": { "PreToolUse": [ { "matcher": "Edit|MultiEdit|Write|NotebookEdit",
#     "hooks": [ { "type": "command", "command": "/path/to/prefer-file-editor.sh" } ] } ] }
#
# A path outside of FILE_EDITOR_DIR, if that is set, is left alone: the server could not reach it.

input=$(cat)

field() {
    printf '%s' "$input" | tr '\n' ' ' | sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*/\1/p"
}

path=$(field file_path)
case $path in
*.ipynb) exit 0 ;;
esac
if [ -n "$FILE_EDITOR_DIR" ]; then
    case $path in
    "$FILE_EDITOR_DIR"/*) ;;
    *) exit 0 ;;
    esac
fi

case $(field tool_name) in
Write) instead='mcp__file-editor__write_text_file (path, content)' ;;
Edit | MultiEdit) instead='mcp__file-editor__multi_edit_text_file (path, edits: [{old_string, new_string}])' ;;
*) exit 0 ;;
esac

printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"%s"}}\n' \
    "Use $instead: it locks the file, refuses text that stands there more than once, and keeps line endings."
