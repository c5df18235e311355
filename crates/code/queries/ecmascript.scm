; What JavaScript and TypeScript share. What the captures mean is told in src/tags.rs. Where two patterns name the same thing,
; the first one counts.

(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @class
((assignment_expression
    left: (member_expression
      object: (member_expression object: (identifier) @receiver property: (_) @prototype)
      property: (_) @name)
    right: (function_expression body: (_) @body)) @method
  (#eq? @prototype "prototype"))
(assignment_expression
  left: [(identifier) @name (member_expression property: (_) @name)]
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @function
(assignment_expression
  left: [(identifier) @name (member_expression property: (_) @name)]
  right: (class body: (_) @body)) @class
(function_expression name: (_) @name) @function
(export_statement
  "default" @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ] @function)
(export_statement "default" @name value: (class body: (_) @body) @class)

(class_declaration name: (_) @name) @class
(class name: (_) @name) @class

(method_definition name: (_) @name) @method
(pair
  key: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @method

(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(program (variable_declaration (variable_declarator name: (identifier) @name) @constant))
(program
  (export_statement
    declaration: (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
(program
  (expression_statement
    (assignment_expression left: (member_expression property: (_) @name) right: (object)) @constant))

(export_statement declaration: (_) @inner) @outer
(export_statement value: (_) @inner) @outer
; Of several, none has the keyword for itself.
(lexical_declaration . (variable_declarator) @inner .) @outer
(variable_declaration . (variable_declarator) @inner .) @outer
(expression_statement . (assignment_expression) @inner) @outer
(decorator) @attribute
(comment) @comment
