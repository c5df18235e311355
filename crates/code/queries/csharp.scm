; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(class_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(struct_declaration name: (_) @name) @struct
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_member_declaration name: (_) @name) @constant
(delegate_declaration name: (_) @name) @type
(namespace_declaration name: (_) @name) @module
(file_scoped_namespace_declaration name: (_) @name) @module

(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @method
(destructor_declaration name: (_) @name) @method
(operator_declaration operator: _ @name) @method
(conversion_operator_declaration type: (_) @name) @method
(indexer_declaration "this" @name accessors: (_) @body) @method
(indexer_declaration "this" @name) @method
(local_function_statement name: (_) @name) @function

(property_declaration name: (_) @name accessors: (_) @body) @field
(property_declaration name: (_) @name value: (_) @body) @field
(property_declaration name: (_) @name) @field
(event_declaration name: (_) @name accessors: (_) @body) @field
(event_field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
((field_declaration
    (modifier) @modifier
    (variable_declaration (variable_declarator name: (_) @name))) @constant
  (#eq? @modifier "const"))
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field

(comment) @comment
