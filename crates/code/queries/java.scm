; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(class_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(annotation_type_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_constant name: (_) @name) @constant
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @method
(compact_constructor_declaration name: (_) @name) @method
(annotation_type_element_declaration name: (_) @name) @method
(field_declaration declarator: (variable_declarator name: (_) @name)) @field
(constant_declaration declarator: (variable_declarator name: (_) @name)) @constant
(package_declaration [(identifier) (scoped_identifier)] @name) @module
(module_declaration name: (_) @name) @module

(line_comment) @comment
(block_comment) @comment
