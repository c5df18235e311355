; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(namespace_definition name: (_) @name) @module
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(trait_declaration name: (_) @name) @trait
(enum_declaration name: (_) @name) @enum
(enum_case name: (_) @name) @constant
(function_definition name: (_) @name) @function
(method_declaration name: (_) @name) @method
(const_declaration (const_element . (name) @name)) @constant
(property_declaration (property_element name: (variable_name (name) @name))) @field
(property_promotion_parameter name: (variable_name (name) @name)) @field
((function_call_expression
    function: (name) @defines
    arguments: (arguments . (argument (string (string_content) @name)))) @constant
  (#eq? @defines "define"))

(comment) @comment
