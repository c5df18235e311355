; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_definition name: (_) @name) @function
(program (variable_assignment name: (variable_name) @name) @constant)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @constant)

(comment) @comment
