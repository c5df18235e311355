; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(class_declaration declaration_kind: "class" name: (_) @name) @class
(class_declaration declaration_kind: "actor" name: (_) @name) @class
(class_declaration declaration_kind: "struct" name: (_) @name) @struct
(class_declaration declaration_kind: "enum" name: (_) @name) @enum
(class_declaration declaration_kind: "extension" name: (_) @name) @scope
(protocol_declaration name: (_) @name) @interface
(enum_entry name: (_) @name) @constant
(typealias_declaration "typealias" . name: (_) @name) @type
(associatedtype_declaration "associatedtype" . name: (_) @name) @type
(macro_declaration (simple_identifier) @name) @macro

(function_declaration "func" . name: _ @name) @function
(protocol_function_declaration "func" . name: _ @name) @method
(init_declaration "init" @name) @method
(deinit_declaration "deinit" @name) @method
(subscript_declaration "subscript" @name (computed_property) @body) @method
(subscript_declaration "subscript" @name) @method

(protocol_property_declaration name: (pattern bound_identifier: (_) @name)) @field
(class_body
  (property_declaration
    name: (pattern bound_identifier: (_) @name)
    computed_value: (_)? @body) @field)
(enum_class_body
  (property_declaration
    name: (pattern bound_identifier: (_) @name)
    computed_value: (_)? @body) @field)
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @constant)

(comment) @comment
(multiline_comment) @comment
