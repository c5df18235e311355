; What only TypeScript has, with elements and without them.

(function_signature name: (_) @name) @function
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(enum_assignment name: (_) @name) @constant
(enum_body name: (_) @name @constant)
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(public_field_definition
  name: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(public_field_definition name: (_) @name) @field
(interface_declaration body: (interface_body (property_signature name: (_) @name) @field))
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @field))
(ambient_declaration (_) @inner) @outer
(expression_statement . (internal_module) @inner) @outer
