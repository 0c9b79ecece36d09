"""The tables and figures of five publications, made again: the printed value beside ours."""
