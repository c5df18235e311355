; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_declaration name: (_) @name) @function
(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @receiver
        (generic_type type: (_) @receiver)
        (pointer_type (type_identifier) @receiver)
        (pointer_type (generic_type type: (_) @receiver))
        (parenthesized_type (pointer_type (type_identifier) @receiver))
      ]))
  name: (_) @name) @method
(method_declaration name: (_) @name) @method
(method_elem name: (_) @name) @method
(type_spec name: (_) @name type: (struct_type (_) @body)) @struct
(type_spec name: (_) @name type: (interface_type "{" @body)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type
(field_declaration name: (_) @name) @field
; What is embedded has the name of its type.
(field_declaration
  . type: [
    (type_identifier) @name
    (qualified_type name: (_) @name)
    (generic_type type: (type_identifier) @name)
    (generic_type type: (qualified_type name: (_) @name))
  ]) @field
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (_) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @constant)))
(package_clause (_) @name) @module

; Without parentheses there is one of them, and the keyword belongs to it.
(type_declaration . "type" . (_) @inner .) @outer
(const_declaration . "const" . (_) @inner .) @outer
(var_declaration . "var" . (var_spec) @inner .) @outer
(comment) @comment
