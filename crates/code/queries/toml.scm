; Tables and their keys. What the captures mean is told in src/tags.rs.

(table . "[" . (_) @name . (pair) @body) @module
(table . "[" . (_) @name) @module
(table_array_element . "[[" . (_) @name . (pair) @body) @module
(table_array_element . "[[" . (_) @name) @module
(pair . (_) @name) @field

(comment) @comment
