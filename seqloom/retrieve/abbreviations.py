"""English words that a full stop follows without ending the sentence."""

from __future__ import annotations

ALWAYS = {  # a sentence never ends here
    "dr", "mr", "mrs", "ms", "mx", "prof", "rev", "hon", "gen", "col", "capt", "lt", "sgt", "cmdr", "maj", "brig",
    "adm", "sen", "gov", "pres", "supt", "messrs", "mme", "mlle", "mt", "ft", "st", "e.g", "i.e", "eg", "ie", "viz",
    "cf", "vs", "v", "approx", "resp", "ca", "incl", "excl", "esp",
}  # fmt: skip
BEFORE_NUMBERS = {  # nor here, if a number or a letter follows
    "fig", "figs", "eq", "eqs", "eqn", "eqns", "ref", "refs", "sec", "secs", "sect", "ch", "chap", "no", "nos", "vol",
    "vols", "p", "pp", "art", "tab", "alg", "thm", "lem", "def", "prop", "app", "appx", "ex", "para", "pt", "ed",
    "nr", "par", "cl",
}  # fmt: skip
MONTHS = {  # nor here, if a number follows
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
}  # fmt: skip
PERHAPS = {  # ends a sentence only if the next word usually begins one
    "al", "etc", "inc", "ltd", "co", "corp", "bros", "jr", "sr", "ph.d", "m.d", "b.a", "m.a", "b.sc", "m.sc", "u.s",
    "u.k", "u.n", "e.u", "a.m", "p.m", "dept", "est", "univ", "inst", "assn", "ave", "blvd", "rd", "min", "max", "sp",
    "spp", "var", "subsp", "hrs", "hr", "mins", "sec", "yr", "yrs", "lb", "lbs", "oz",
}  # fmt: skip
STARTERS = {  # words that usually begin one
    "The", "A", "An", "In", "It", "This", "That", "These", "Those", "We", "He", "She", "They", "I", "You", "There",
    "Here", "However", "But", "And", "Or", "If", "When", "While", "Where", "Why", "What", "Who", "How", "As", "At",
    "By", "For", "From", "Of", "On", "To", "With", "After", "Before", "Since", "Because", "Although", "Though",
    "Thus", "Therefore", "Hence", "So", "Then", "Our", "Their", "His", "Her", "Its", "My", "Your", "Some", "Many",
    "Most", "Several", "All", "Both", "Each", "Every", "Not", "No", "Yes", "One", "Two", "Such", "Also", "Moreover",
    "Furthermore", "Finally", "First", "Second", "Next", "Later", "Today", "Now", "Meanwhile", "Nevertheless",
    "Instead", "Another", "Other", "During", "Until", "Unless", "Once", "Under", "Over", "Between", "Among",
    "Despite", "Following", "According", "Given", "Using", "Let", "Is", "Are", "Was", "Were", "Do", "Does", "Did",
    "Can", "Could", "Should", "Would", "Will", "May", "Might", "Must", "Please", "See", "Note",
}  # fmt: skip
