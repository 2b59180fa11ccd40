package lexicon

import "strings"

// WordSet is the set of the words of a list, which spaces part.
func WordSet(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// StemSet is the set of the stems of the words of a list.
func StemSet(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[Stem(w)] = true
	}
	return set
}

// stopWords are the words that IsStop knows.
var stopWords = WordSet(`
a about above after again against all also although am among an and any are aren't as at
be because been before being below between both but by can can't cannot could couldn't
did didn't do does doesn't doing don't down during each either else ever every few for from further
had hadn't has hasn't have haven't having he he'd he'll her here hers herself him himself his how however
i i'd i'll i'm i've if in into is isn't it itself its just let let's may me might more most much must mustn't my myself
neither no nor not of off on once one's only or other others ought our ours ourselves out over own
per perhaps please rather same shall shan't she she'd she'll should shouldn't since so some such
than that that'll the their theirs them themselves then there therefore these they they'd they'll they're they've this those though through thus to too
under until up upon us very via was wasn't we we'd we'll we're we've were weren't what whatever when whenever where whereas whether which while who whoever whom whose why
will with within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
`)

// The words that decide whether a full stop ends a sentence. Where an
// abbreviation is spelled like a plain word ("Gen.", "Sat."), only its
// capitalised form counts.
var (
	// joining abbreviations always have something after them.
	joining = WordSet(`
		mr mrs ms mx dr prof messrs mme mlle msgr vs v cf viz approx e.g i.e eg ie esp incl resp nr ca lit abbr pron
		Gen Col Maj Capt Cpt Lt Sgt Cpl Pvt Adm Cmdr Cdr Brig Amb Supt Insp Rev Fr Hon Sen Sens Rep Reps Gov Pres Ft Mt Mts`)

	// ending abbreviations may also end a sentence; they do where a word follows
	// that usually begins one.
	ending = WordSet(`
		inc ltd co corp cos llc plc bros jr sr esq al dept univ assn assoc ed eds trans
		St Ste Ave Blvd Rd Hwy Bldg Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec
		Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun
		Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Mass Md Mich Minn Miss Mo Mont Neb Nev Okla Ore Pa Penn Tenn Tex Va Vt Wash Wis Wyo
		ph.d gmbh`)

	// counting abbreviations stand before a number.
	counting = WordSet(`
		no nos fig figs vol vols art arts sec secs ch chap chaps p pp pg eq eqs ver pt pts op para paras ex ref refs tab app cl
		c ca approx est b d r fl m f ft in lb lbs oz min hr num tel ext issue circa max avg av`)

	// labels name what they stand before by a letter: after "vitamin C." a
	// sentence ends, after "by J." a name goes on.
	labels = WordSet(`
		vitamin hepatitis influenza type class group grade plan option appendix section part point figure table chapter schedule
		category division level phase room zone route line exhibit war act title stage step size unit team world case item`)

	// dangling words leave something open at the end of a line.
	dangling = WordSet("a an the of to and or in for with by from as at on into than that which who whose its their his her is are was were be between")

	// exclaimed are names that end with an exclamation mark.
	exclaimed = WordSet(`yahoo jeopardy e oklahoma mamma oliver panic wham`)

	// starters are words that, with a capital, usually begin a sentence.
	starters = WordSet(`
		A An The This That These Those It Its He She They We You I His Her Their Our My Your One Two Three Four Five Six Seven Eight Nine Ten
		In On At By For From With Without As After Before During While When Whenever Where Wherever If Although Though However But And Or So Yet Because Since
		There Here Then Thus Therefore Today Not No Some Many Most Much Several All Both Each Every Any Other Others Another Such Few
		What Who Whose Why How Which According Under Over Between Among Despite Unlike Until Upon Within Through Throughout Across Against Along Around
		To Of Also Additionally Moreover Furthermore Meanwhile Instead Nevertheless Nonetheless Otherwise Indeed Later Earlier Now Once Only Even Still
		Are Is Was Were Do Does Did Has Have Had Can Could Should Would Let Please Unfortunately Finally First Second Third Next Currently Eventually
		Recently Originally Initially Generally Typically Usually Often Sometimes Historically Following Due Given Using Based Neither Either Whether Like Just`)

	// speech verbs follow a quoted question and its speaker.
	speech = WordSet(`said says say asked asks ask replied replies wrote writes added adds answered cried shouted exclaimed wondered
		demanded inquired explained told whispered yelled called thought responded declared remarked noted continued began`)

	// zones and days follow a time of day without a new sentence.
	zones = WordSet(`EST EDT CST CDT MST MDT PST PDT ET CT MT PT GMT UTC BST CET CEST
		Monday Tuesday Wednesday Thursday Friday Saturday Sunday Eastern Central Mountain Pacific Greenwich
		January February March April May June July August September October November December`)
)

// unitNames lists the units: the normalised name, then how else it is written.
// Forms that differ by case only in meaning are written with their case.
const unitNames = `
%: percent pct
second: seconds sec secs s
minute: minutes min mins
hour: hours hr hrs h
day: days
week: weeks wk wks
month: months
years: year years yr yrs
century: centuries
foot: feet ft
inch: inches in
yard: yards yd yds
mile: miles mi
metre: metres meter meters m
kilometre: kilometres kilometer kilometers km
centimetre: centimetres centimeter centimeters cm
millimetre: millimetres millimeter millimeters mm
nanometre: nanometres nanometer nanometers nm
acre: acres
hectare: hectares ha
square_kilometre: km² sqkm
square_metre: m²
cubic_metre: m³
litre: litres liter liters l L
millilitre: millilitres milliliter milliliters ml mL
gallon: gallons gal
gram: grams g gramme grammes
kilogram: kilograms kg kilo kilos
milligram: milligrams mg
ton: tons
tonne: tonnes
pound: lb lbs pounds
ounce: ounces oz
degree: degrees
celsius: centigrade
fahrenheit:
kelvin: kelvins
watt: watts W
kilowatt: kilowatts kW
megawatt: megawatts MW
gigawatt: gigawatts GW
hertz: Hz
megahertz: MHz
gigahertz: GHz
volt: volts V
byte: bytes
kilobyte: kilobytes KB kB
megabyte: megabytes MB
gigabyte: gigabytes GB
terabyte: terabytes TB
mile_per_hour: mph
usd: dollar dollars USD
eur: euro euros EUR
gbp: GBP
jpy: yen JPY
cent: cents
person: people persons
times: fold`

var (
	// units gives the normalised name of a unit as written. A form with a capital
	// is looked up as it is, others in lower case.
	units = readUnits(unitNames)

	// signUnits are the units that are no words, longest first.
	signUnits = [][2]string{
		{"°F", "fahrenheit"}, {"° F", "fahrenheit"}, {"°C", "celsius"}, {"° C", "celsius"}, {"℃", "celsius"}, {"℉", "fahrenheit"}, {"°", "degree"},
		{"%", "%"}, {"％", "%"}, {"‰", "‰"}, {"km/h", "kilometre per hour"}, {"sq mi", "square mile"}, {"sq. mi", "square mile"}, {"sq km", "square kilometre"}, {"sq ft", "square foot"},
	}

	// compound words stand before a unit and make it another one.
	compound = map[string]string{"square": "square ", "sq": "square ", "cubic": "cubic ", "degrees": "", "degree": ""}

	// degrees are the scales that go with the word "degrees".
	degrees = map[string]string{"Fahrenheit": "fahrenheit", "F": "fahrenheit", "fahrenheit": "fahrenheit",
		"Celsius": "celsius", "C": "celsius", "celsius": "celsius", "centigrade": "celsius", "Kelvin": "kelvin"}

	currencies = map[string]string{"US$": "usd", "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}

	scales = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9}

	// small are the numbers that are one word.
	small = map[string]float64{
		"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
		"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
		"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}

	// loosely are words that may stand for a number.
	loosely = map[string]float64{
		"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
		"once": 1, "single": 1, "twice": 2, "both": 2, "pair": 2, "double": 2, "half": 50,
	}

	rangeWords = WordSet("to or and")

	months = WordSet(`January February March April May June July August September October November December
		Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec`)

	weekdays = WordSet("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
)

// readUnits turns the list of units into a table.
func readUnits(list string) map[string]string {
	table := make(map[string]string)
	for line := range strings.Lines(list) {
		name, forms, _ := strings.Cut(strings.TrimSpace(line), ":")
		plain := strings.ReplaceAll(name, "_", " ")
		if !strings.Contains(name, "_") && name != "%" {
			table[name] = plain
		}
		for form := range strings.FieldsSeq(forms) {
			table[form] = plain
		}
	}
	delete(table, "")
	return table
}
