"""The processes that hold models: started, watched and asked by the HTTP process, which holds none."""
