# The program itself says what may come next; this is how fish is told.
function __file_editor_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l current (commandline -ct)
    for line in (command file-editor complete --word="$current" -- $before 2>/dev/null)
        set -l parts (string split \t -- $line)
        if test -n "$parts[1]"
            echo $line
            continue
        end
        set -l path (string sub --start=(math 1 + (string length -- "$parts[3]")) -- "$current")
        set -l found (__fish_complete_path "$path")
        if test "$parts[2]" = folders
            set found (__fish_complete_directories "$path" "")
        end
        printf '%s\n' "$parts[3]"$found
    end
end

complete -c file-editor -f -a '(__file_editor_complete)'
