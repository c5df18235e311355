; The keys of the outermost object, and those one level below. What the captures mean is told in src/tags.rs.

(document (object (pair key: (_) @name value: [(object) @body (array) @body]) @module))
(document (object (pair key: (_) @name) @field))
(document (object (pair value: (object (pair key: (_) @name) @field))))

(comment) @comment
