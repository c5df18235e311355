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

; What a header declares, and variables, whatever conditions are around them. A declarator tells which are functions.
(declaration declarator: (_) @name) @constant @global
; Parameters of the old style are declared before the body.
(function_definition (declaration) @block)
(compound_statement) @block

(linkage_specification body: [(declaration) (function_definition)] @inner) @outer
(comment) @comment
