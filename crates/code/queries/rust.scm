; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name body: (ordered_field_declaration_list) @head) @struct
(struct_item name: (_) @name) @struct
(union_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(enum_variant name: (_) @name body: (ordered_field_declaration_list) @head) @constant
(enum_variant name: (_) @name) @constant
(trait_item name: (_) @name) @trait
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(mod_item name: (_) @name) @module
(macro_definition name: (_) @name . (macro_rule) @body) @macro
(macro_definition name: (_) @name) @macro
(field_declaration name: (_) @name) @field

(impl_item type: (_) @name) @scope

(line_comment) @comment
(block_comment) @comment
(attribute_item) @attribute
