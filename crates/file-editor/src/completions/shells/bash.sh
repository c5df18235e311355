# The program itself says what may come next; this is how bash is told.
_file_editor() {
    local rest=${COMP_LINE:0:COMP_POINT} current="" blanks part start line word i
    local -a before=()
    COMPREPLY=()
    # Bash breaks words at = and : too. To the program only blanks do.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blanks=${rest%%[![:space:]]*}
        rest=${rest#"$blanks"}
        if [[ $i -lt $COMP_CWORD ]]; then part=${COMP_WORDS[i]}; else part=$rest; fi
        if [[ -n $blanks ]]; then before+=("$current"); current=""; fi
        current+=$part
        rest=${rest#"$part"}
    done
    if [[ $part == [=:]* ]]; then part=""; fi
    # What stays on the line as it is.
    start=${current%"$part"}
    while IFS= read -r line; do
        if [[ $line == $'\t'* ]]; then
            _file_editor_paths "$line"
            return
        fi
        word=${line%%$'\t'*}
        if [[ $word == *= ]]; then _file_editor_add "$word" ""; else _file_editor_add "$word" " "; fi
    done < <(command file-editor complete --word="$current" -- "${before[@]:1}" 2>/dev/null)
}

# Of a word that is offered only what is not on the line yet.
_file_editor_add() {
    local word=${1#"$start"}
    if [[ $word == *[!a-zA-Z0-9_./,:=@%+-]* ]]; then printf -v word %q "$word"; fi
    COMPREPLY+=("$word$2")
}

# Bash finds paths itself where it can, since it knows about quotes and ~.
_file_editor_paths() {
    local prefix=${1##*$'\t'} fallback=default action=file path
    if [[ $1 == $'\t'folders* ]]; then fallback=dirnames action=directory; fi
    path=${current#"$prefix"}
    if [[ $path == "$part" ]] && compopt +o nospace -o "$fallback" 2>/dev/null; then return; fi
    while IFS= read -r path; do
        if [[ -d $path ]]; then _file_editor_add "$prefix$path" /; else _file_editor_add "$prefix$path" " "; fi
    done < <(compgen -A "$action" -- "$path")
}

complete -o nospace -F _file_editor file-editor
