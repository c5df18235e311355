; The keys of the outermost mapping, and those one level below. What the captures mean is told in src/tags.rs.

(document
  (block_node
    (block_mapping (block_mapping_pair key: (_) @name value: (block_node) @body) @module)))
(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @field)))
(document
  (block_node
    (block_mapping
      (block_mapping_pair
        value: (block_node (block_mapping (block_mapping_pair key: (_) @name) @field))))))

(comment) @comment
