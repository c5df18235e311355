; Headings, and what has an id. What the captures mean is told in src/tags.rs.

((element . (start_tag . (tag_name) @heading) . (text) @name) @type
  (#any-of? @heading "h1" "h2" "h3" "h4" "h5" "h6" "H1" "H2" "H3" "H4" "H5" "H6"))
((element
    [
      (start_tag (attribute . (attribute_name) @id . (quoted_attribute_value (_) @name))) @head
      (start_tag (attribute . (attribute_name) @id . (attribute_value) @name)) @head
      (self_closing_tag (attribute . (attribute_name) @id . (quoted_attribute_value (_) @name)))
    ]) @field
  (#any-of? @id "id" "ID"))

(comment) @comment
