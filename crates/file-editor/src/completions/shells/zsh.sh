#compdef file-editor
# The program itself says what may come next; this is how zsh is told.
_file-editor() {
    local line word entry
    local -a whole open
    while IFS= read -r line; do
        if [[ $line == $'\t'* ]]; then
            [[ $line == *= ]] && compset -P 1 '*='
            if [[ $line == $'\t'folders* ]]; then _files -/; else _files; fi
            return
        fi
        word=${line%%$'\t'*}
        entry="${word//:/\\:}:${line#*$'\t'}"
        # More is to follow after a =, so no blank does.
        if [[ $word == *= ]]; then open+=("$entry"); else whole+=("$entry"); fi
    done < <(command file-editor complete --word="${(Q)PREFIX}" -- "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)
    _describe -t words word whole -- open -S ''
}

if [[ $funcstack[1] == _file-editor ]]; then
    _file-editor "$@"
else
    compdef _file-editor file-editor
fi
