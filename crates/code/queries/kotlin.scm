; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(class_declaration name: (_) @name (enum_class_body) @body) @enum
(class_declaration "interface" name: (_) @name (class_body) @body) @interface
(class_declaration "interface" name: (_) @name) @interface
(class_declaration name: (_) @name (class_body) @body) @class
(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name (class_body) @body) @class
(object_declaration name: (_) @name) @class
(companion_object name: (_) @name (class_body) @body) @class
(enum_entry (identifier) @name (class_body) @body) @constant
(enum_entry (identifier) @name) @constant
(type_alias type: (_) @name) @type
(package_header (_) @name) @module

(function_declaration (_) @receiver . "." . name: (_) @name (function_body) @body) @method
(function_declaration name: (_) @name (function_body) @body) @function
(function_declaration name: (_) @name) @function
(secondary_constructor "constructor" @name (block) @body) @method
(secondary_constructor "constructor" @name) @method

(class_parameter "val" (identifier) @name) @field
(class_parameter "var" (identifier) @name) @field
(class_body (property_declaration (variable_declaration (identifier) @name)) @field)
(enum_class_body (property_declaration (variable_declaration (identifier) @name)) @field)
(source_file (property_declaration (variable_declaration (identifier) @name)) @constant)

(line_comment) @comment
(block_comment) @comment
