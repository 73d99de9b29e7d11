package plan

// Rules is the version of the rules for results: which plan a source gets, which files a result
// has, and what they say. Raise it with each change after which this program makes another result
// of a source that it has converted before. Then every run brings its target up to date, which
// reads no weights if their files are the same. A new version of the program with the same rules
// leaves targets as they are, and asks for no more of them than their list of files. An older
// version changes nothing that newer rules made: two versions that work on one list would undo each
// other's work.
const Rules = 2
