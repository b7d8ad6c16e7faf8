"""ONE FILE PER CLAIM about sequence models; the file's name is the name you type: `seqloom study NAME`.

Each file has one object STUDY. Parts that studies share are in files whose names begin with an underscore.
"""
