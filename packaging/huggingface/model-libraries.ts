	df11: {
		prettyLabel: "DF11",
		repoName: "df11-convert",
		repoUrl: "https://github.com/df11-convert/df11-convert",
		docsUrl: "https://github.com/df11-convert/df11-convert/blob/main/docs/python.md",
		snippets: snippets.df11,
		filter: false,
	},
