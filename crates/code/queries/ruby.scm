; What the captures mean is told in src/tags.rs. Where two patterns name the same thing, the first one counts.

(class name: (scope_resolution scope: (_)? @receiver name: (_) @name)) @class
(class name: (constant) @name) @class
(module name: (scope_resolution scope: (_)? @receiver name: (_) @name)) @module
(module name: (constant) @name) @module
(module body: (body_statement (method name: (_) @name) @method))
(module body: (body_statement (singleton_method name: (_) @name) @method))
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(alias name: (_) @name) @method
((assignment
    left: (constant) @name
    right: (call receiver: (constant) @receiving block: (_)? @body)) @class
  (#any-of? @receiving "Struct" "Class" "Data"))
(assignment left: (constant) @name) @constant
(assignment left: (left_assignment_list (constant) @name)) @constant
((call
    method: (identifier) @declares
    arguments: (argument_list [(simple_symbol) @name (string (string_content) @name)])) @field
  (#any-of? @declares "attr_reader" "attr_writer" "attr_accessor"))
((call
    method: (identifier) @declares
    arguments: (argument_list . [(simple_symbol) @name (string (string_content) @name)])) @method
  (#any-of? @declares "define_method" "alias_method"))

(comment) @comment
