"""A report as one page: values in, HTML and SVG out."""
