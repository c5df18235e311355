; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

; What exports a class makes it look like a function without parameters.
(function_definition type: (class_specifier) declarator: (identifier) @name) @class
(function_definition type: (struct_specifier) declarator: (identifier) @name) @struct
(function_definition declarator: (_) @name) @function
(class_specifier name: (_) @name body: (_)) @class
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @constant
(type_definition declarator: (_) @name) @type
(alias_declaration name: (_) @name) @type
(concept_definition name: (_) @name) @type
(namespace_definition name: (_) @name) @module
((function_definition declarator: (identifier) @keyword . (_ (_) @name) . body: (_)) @module
  (#eq? @keyword "namespace"))
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro

; What is declared in a class: constructors and conversions have no type. A declarator tells which are functions.
(field_declaration_list (declaration declarator: (_) @name) @method)
(field_declaration declarator: (_) @name) @field

; What a header declares, and variables, whatever conditions are around them.
(declaration declarator: (_) @name) @constant @global
(function_definition (declaration) @block)
(compound_statement) @block
; Behind a macro a namespace looks like a function, too.
(function_definition declarator: (identifier) body: (_) @open)
; A friend is declared elsewhere.
(friend_declaration) @block

(linkage_specification body: [(declaration) (function_definition)] @inner) @outer
(template_declaration (_) @inner .) @outer
(comment) @comment
