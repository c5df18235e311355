; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_definition declarator: (_) @name) @function
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @constant
(type_definition declarator: (_) @name) @type
(field_declaration declarator: (_) @name) @field
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro

; At the top of a file: what a header declares, and variables.
(translation_unit (declaration declarator: (function_declarator) @name) @function)
(translation_unit
  (declaration declarator: (pointer_declarator declarator: (function_declarator) @name)) @function)
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name)) @constant)

(comment) @comment
