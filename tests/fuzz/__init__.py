"""Fuzzing: valid files, run folders and options of every kind, then damaged, through the command line in-process.

case.py: what an input is. sources.py makes valid data, as tables.py writes it; damage.py and spoiled.py spoil it.
options.py looks for every option in signatures and schemas, odd.py has odd words; commands.py and more_commands.py put
them together. server.py runs a case in a forked process, shelf.py has trained runs for it, oracle.py judges what
happened. campaign.py runs many (`python -m fuzz`, `make fuzz`); readers.py is the coverage-guided run.
"""
