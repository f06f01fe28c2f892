"""What repeats the papers: their tables, their analyses, and their figures beside ours."""
