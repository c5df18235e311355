; Selectors, animations and custom properties. What the captures mean is told in src/tags.rs.

(rule_set (selectors (_) @name) (block) @body) @class
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @type
(media_statement (_) @name . (block) @body) @module
((declaration . (property_name) @name) @constant
  (#begins? @name "--"))

(comment) @comment
