; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_definition name: (_) @name) @function
(program (variable_assignment name: (variable_name) @name) @constant)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @constant)
(program (declaration_command ["declare" "typeset"] (variable_name) @name) @constant)

; What is set under a condition is set for all of the file, unless a function or another shell does it.
(if_statement
  [
    (variable_assignment name: (variable_name) @name)
    (declaration_command (variable_assignment name: (variable_name) @name))
  ] @constant @global)
(elif_clause
  [
    (variable_assignment name: (variable_name) @name)
    (declaration_command (variable_assignment name: (variable_name) @name))
  ] @constant @global)
(else_clause
  [
    (variable_assignment name: (variable_name) @name)
    (declaration_command (variable_assignment name: (variable_name) @name))
  ] @constant @global)
(compound_statement) @block
(subshell) @block
(comment) @comment
