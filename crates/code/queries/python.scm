; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_definition
  name: (_) @name
  body: (block . (comment)* . (expression_statement . (string) @doc))) @function
(function_definition name: (_) @name) @function
(class_definition
  name: (_) @name
  body: (block . (comment)* . (expression_statement . (string) @doc))) @class
(class_definition name: (_) @name) @class
(type_alias_statement left: (_) @name) @type

(module (expression_statement (assignment left: (identifier) @name) @constant))
(class_definition
  body: (block (expression_statement (assignment left: (identifier) @name) @field)))

(decorator) @attribute
(comment) @comment
