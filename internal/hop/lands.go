package hop

import (
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// lands are countries by the word for what belongs to them: a text on somebody often has
// "Swedish" where the next text has Sweden.
var lands = byPeople(`American United States; British United Kingdom; English England; Scottish Scotland; Welsh Wales; Irish Ireland; French France; German Germany;
	Italian Italy; Spanish Spain; Portuguese Portugal; Dutch Netherlands; Belgian Belgium; Swiss Switzerland; Austrian Austria; Swedish Sweden; Norwegian Norway;
	Danish Denmark; Finnish Finland; Icelandic Iceland; Polish Poland; Czech Czech Republic; Slovak Slovakia; Hungarian Hungary; Romanian Romania; Bulgarian Bulgaria;
	Greek Greece; Turkish Turkey; Russian Russia; Ukrainian Ukraine; Serbian Serbia; Croatian Croatia; Israeli Israel; Iranian Iran; Iraqi Iraq; Indian India;
	Pakistani Pakistan; Chinese China; Japanese Japan; Korean Korea; Vietnamese Vietnam; Thai Thailand; Indonesian Indonesia; Malaysian Malaysia; Filipino Philippines;
	Australian Australia; Canadian Canada; Mexican Mexico; Brazilian Brazil; Argentine Argentina; Chilean Chile; Colombian Colombia; Cuban Cuba; Egyptian Egypt;
	Nigerian Nigeria; Kenyan Kenya; Ethiopian Ethiopia; Moroccan Morocco; Algerian Algeria; Tunisian Tunisia; Peruvian Peru; Venezuelan Venezuela; Bolivian Bolivia;
	Estonian Estonia; Latvian Latvia; Lithuanian Lithuania; Slovenian Slovenia; Albanian Albania; Armenian Armenia; Georgian Georgia; Lebanese Lebanon; Syrian Syria;
	Singaporean Singapore; Taiwanese Taiwan; Nepalese Nepal; Bangladeshi Bangladesh; Jamaican Jamaica; Ghanaian Ghana; Ugandan Uganda; Zambian Zambia; Maltese Malta`)

func byPeople(list string) map[string]string {
	m := map[string]string{}
	for pair := range strings.SplitSeq(list, ";") {
		people, land, _ := strings.Cut(strings.TrimSpace(pair), " ")
		m[lexicon.Stem(people)] = land
	}
	return m
}
