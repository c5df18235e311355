; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

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
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro

; What is declared in a class: constructors and conversions have no type, functions have a name before their parameters.
(field_declaration_list (declaration declarator: (_) @name) @method)
(field_declaration declarator: (function_declarator declarator: (field_identifier)) @name) @method
(field_declaration declarator: (function_declarator declarator: (operator_name)) @name) @method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator) @name)) @method
(field_declaration declarator: (reference_declarator (function_declarator) @name)) @method
(field_declaration declarator: (_) @name) @field

; Outside of functions: what a header declares, and variables.
(translation_unit (declaration declarator: (function_declarator) @name) @function)
(translation_unit
  (declaration declarator: (pointer_declarator declarator: (function_declarator) @name)) @function)
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name)) @constant)
(declaration_list (declaration declarator: (function_declarator) @name) @function)
(declaration_list
  (declaration declarator: (pointer_declarator declarator: (function_declarator) @name)) @function)
(declaration_list (declaration declarator: (init_declarator declarator: (_) @name)) @constant)
(template_declaration (declaration declarator: (function_declarator) @name) @function)

(template_declaration (_) @inner .) @outer
(comment) @comment
