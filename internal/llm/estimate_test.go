package llm_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// TestEstimateAgainstProviders holds the estimate against what providers counted:
// a reservation made with it must never be too small.
func TestEstimateAgainstProviders(t *testing.T) {
	ratios := map[string][]float64{}
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", func(name string) bool { return strings.HasSuffix(name, ".yaml") }) {
		asked, said := exchanges(f.Data)
		for _, r := range said {
			guess := llm.EstimateText(r.text)
			ratios["replies"] = append(ratios["replies"], float64(guess)/float64(r.tokens))
			if guess < r.tokens {
				t.Errorf("%s: estimate %d of a reply of %d tokens", f.Name, guess, r.tokens)
			}
		}
		for _, e := range asked {
			kind := e.kind()
			guess := llm.Estimate(e.call)
			ratios[kind] = append(ratios[kind], float64(guess)/float64(e.reported))
			hidden := 0
			if strings.Contains(e.model, "grok") { // its provider puts some 150 to 200 tokens of its own before every call
				hidden = 110
			}
			if guess+hidden < e.reported {
				t.Errorf("%s: estimate %d of %d tokens that %s counted", f.Name, guess, e.reported, e.model)
			}
		}
	}
	total := 0
	for _, kind := range []string{"anthropic, text", "anthropic, tools", "openai, text", "openai, tools", "replies"} {
		r := ratios[kind]
		slices.Sort(r)
		if total += len(r); len(r) > 0 {
			t.Logf("%-17s %3d exchanges, estimate/reported: min %.2f, median %.2f, max %.2f", kind, len(r), r[0], r[len(r)/2], r[len(r)-1])
		}
	}
	if total < 100 {
		t.Errorf("only %d exchanges could be read", total)
	}
}

// kinds are texts with the characters that a token holds at the least, as far as
// is published for the byte-level BPE tokenizers in use: they were trained on
// English first, spell the words of other Latin languages in fragments of two or
// three letters, and know pairs of bytes of most other scripts.
var kinds = []struct {
	name string
	per  float64 // characters to a token
	text string
}{
	{"English", 4.2, "The reservoir was built to hold back the spring floods, and for many years it did so without much trouble. When the summers became drier, the people of the valley began to ask whether the water that was kept for the fields would not be better used by the towns along the river, which had grown faster than anybody expected."},
	{"German", 2.9, "Die Wasserversorgungsgesellschaft der Gemeinde veröffentlichte gestern ihren Jahresbericht über die Grundwasserneubildung. Besonders auffällig sind die Niederschlagsmengen in den Sommermonaten, die deutlich unter dem langjährigen Durchschnitt lagen und die Landwirtschaft vor große Schwierigkeiten stellten."},
	{"Finnish", 2.5, "Järven pinta laski viime kesänä poikkeuksellisen alas, koska sademäärät jäivät tavanomaista pienemmiksi. Paikalliset asukkaat ovat huolissaan kalakantojen elpymisestä, mutta tutkijoiden mukaan tilanne korjaantuu todennäköisesti muutamassa vuodessa, ellei kuivuus jatku."},
	{"Turkish", 2.4, "Barajın yapımı tamamlandığında bölgedeki çiftçiler sulama olanaklarının genişleyeceğini umuyorlardı. Ancak yağışların azalması nedeniyle gölün su seviyesi beklenenden çok daha düşük kaldı ve köylülerin bir kısmı şehirlere göç etmek zorunda kaldı."},
	{"Hungarian", 2.3, "A víztározó építése után a környékbeli gazdálkodók arra számítottak, hogy a termés biztonságosabb lesz. A szárazság azonban megváltoztatta a helyzetet, és a folyó vízszintje is olyan alacsonyra süllyedt, hogy a hajózást a nyár végén korlátozni kellett."},
	{"Swahili", 2.6, "Wakulima wa bonde hilo walitegemea mvua za masika kwa ajili ya mashamba yao ya mahindi na maharage. Baada ya bwawa kujengwa, maji yalianza kugawanywa kwa zamu, na wananchi walikubaliana kwamba kila kijiji kingepata sehemu yake bila ugomvi."},
	{"Vietnamese", 1.8, "Hồ chứa nước được xây dựng để giữ nước lũ vào mùa xuân, và trong nhiều năm nó đã làm việc rất tốt. Khi mùa hè khô hơn, người dân trong thung lũng bắt đầu tự hỏi liệu nước dành cho đồng ruộng có nên chuyển cho các thị trấn hay không."},
	{"Russian", 1.8, "Водохранилище было построено для защиты долины от весенних паводков, и много лет оно справлялось с этой задачей. Когда лето стало суше, жители начали спорить о том, кому должна принадлежать вода."},
	{"Greek", 1.5, "Η τεχνητή λίμνη κατασκευάστηκε για να συγκρατεί τις πλημμύρες της άνοιξης. Όταν τα καλοκαίρια έγιναν πιο ξηρά, οι κάτοικοι της κοιλάδας άρχισαν να συζητούν για τη χρήση του νερού."},
	{"Arabic", 1.5, "بُني السد لحماية الوادي من فيضانات الربيع وعمل سنوات طويلة دون مشاكل كبيرة. وعندما أصبح الصيف أكثر جفافا بدأ سكان القرى يتساءلون عن توزيع المياه بين الحقول والمدن."},
	{"Hindi", 1, "यह बाँध घाटी को वसंत की बाढ़ से बचाने के लिए बनाया गया था और कई वर्षों तक इसने अच्छा काम किया। जब गर्मियाँ सूखी होने लगीं तो लोगों ने पानी के बँटवारे पर सवाल उठाए।"},
	{"Thai", 1, "อ่างเก็บน้ำแห่งนี้สร้างขึ้นเพื่อป้องกันน้ำท่วมในฤดูใบไม้ผลิและใช้งานได้ดีมาหลายปี เมื่อฤดูร้อนแห้งแล้งขึ้น ชาวบ้านเริ่มถามว่าควรแบ่งน้ำอย่างไร"},
	{"Georgian", 0.5, "წყალსაცავი აშენდა გაზაფხულის წყალდიდობისგან ხეობის დასაცავად და მრავალი წელი კარგად მუშაობდა."},
	{"Chinese", 0.77, "这座水库是为了防止春季洪水而修建的，多年来一直运行良好。夏天变得越来越干燥以后，山谷里的居民开始讨论灌溉用水应该怎样分配。"},
	{"Japanese", 0.77, "この貯水池は春の洪水を防ぐために造られ、長年にわたって役目を果たしてきた。夏の乾燥が進むにつれて、谷の住民は水の使い道について話し合うようになった。"},
	{"Korean", 0.77, "이 저수지는 봄철 홍수를 막기 위해 만들어졌고 오랫동안 제 역할을 해 왔다. 여름이 점점 건조해지자 주민들은 물을 어떻게 나눌지 의논하기 시작했다."},
	{"emoji", 0.5, "🌊🏔️🚜💧🌾🐟🏘️⚡🔧📉"},
	{"names", 2.6, "Wojciechowska, Szymon Grzybowski, Nkechi Okonkwo, Thandiwe Mkhize, Ingibjörg Sigurðardóttir, Rajalakshmi Venkataraman, Oyelaran Adebayo, Kristjan Tõnisson, Mihaela Dumitrescu, Zsófia Kerekes, Ewelina Jabłońska, Tuulikki Hämäläinen"},
	{"DNA", 2.2, "ATGGCTAGCAAGGTTCTGACCGATTACGGCTTAAGCCGTATTGACCAGTTGCGATAACGTTAGCCATGCGGATTCAAGCTTGGCACTGACCGTACCATGA"},
	{"protein", 1.7, "MSLEVRKTWQNPGAIHDFYCCKELMVRTSAQGWNHPDFIYKLEEVTRSMMAQGHKNPWDCFIYLKVETRSQAGNHP"},
	{"base64", 1.6, "TWFyY2ggd2luZHMgYmxvdyBvdmVyIHRoZSBxdWlldCByZXNlcnZvaXIgYW5kIHRoZSBmYXJtZXJzIHdhaXQgZm9yIHJhaW4uIEl0IGlzIGxhdGU="},
	{"hex", 1.6, "c3a91f07be5d2246908efa7710bd43c59e68021fd7ab3490e1c6582f7d9b04ae"},
	{"code", 2.7, "func (r *reservoir) release(ctx context.Context, litres int) error {\n\tif litres <= 0 || litres > r.level {\n\t\treturn fmt.Errorf(\"release %d of %d\", litres, r.level)\n\t}\n\tr.level -= litres\n\treturn r.log.Append(ctx, entry{At: r.now(), Litres: -litres})\n}"},
	{"numbers", 1.8, "1987\t40312.75\t-3.1\t0.0042\n1988\t39877.10\t-1.1\t0.0039\n1989\t41250.00\t3.4\t0.0051\n1990\t44806.45\t8.6\t0.0067"},
}

// TestEstimateIsOnTheHighSide holds the estimate against texts of many kinds.
func TestEstimateIsOnTheHighSide(t *testing.T) {
	for _, k := range kinds {
		chars, got := utf8.RuneCountInString(k.text), llm.EstimateText(k.text)
		least := float64(chars) / k.per
		t.Logf("%-10s %4d characters, at most %4.0f tokens, estimate %4d: %.2f characters to a token", k.name, chars, least, got, float64(chars)/float64(got))
		if float64(got) < least {
			t.Errorf("%s: estimate %d, and tokenizers make up to %.0f", k.name, got, least)
		}
		if most := 1.5 * least; k.name == "English" && float64(got) > most {
			t.Errorf("%s: estimate %d of a text of some %.0f tokens", k.name, got, least)
		}
	}
}

// TestEstimateAddsUpLines: the packer of a prompt adds up the counts of its lines.
func TestEstimateAddsUpLines(t *testing.T) {
	var lines []string
	sum := -1
	for _, k := range kinds {
		for line := range strings.SplitSeq(k.text, "\n") {
			lines = append(lines, line)
			sum += llm.EstimateText(line) + 1
		}
	}
	if whole := llm.EstimateText(strings.Join(lines, "\n")); whole != sum {
		t.Errorf("%d lines count %d together and %d one by one", len(lines), whole, sum)
	}
}

// TestEstimateKnowsOwnTexts: instructions, tools and schemas are English or JSON,
// whatever few common words they have; only the input is taken for what it is.
func TestEstimateKnowsOwnTexts(t *testing.T) {
	foreign := kinds[2].text
	bare := llm.Estimate(llm.Call{})
	in := llm.Estimate(llm.Call{Input: foreign}) - bare
	own := llm.Estimate(llm.Call{System: foreign}) - bare
	if in != llm.EstimateText(foreign) || own >= in*3/4 {
		t.Errorf("%d tokens as input, %d as instructions", in, own)
	}
	english := kinds[0].text
	if in, own := llm.Estimate(llm.Call{Input: english}), llm.Estimate(llm.Call{System: english}); in != own {
		t.Errorf("English counts %d as input and %d as instructions", in, own)
	}
}

// exchange is one call as it was made, and the input tokens that the provider counted.
type exchange struct {
	wire, model string
	call        llm.Call
	reported    int
}

func (e exchange) kind() string {
	if len(e.call.Tools) > 0 {
		return e.wire + ", tools"
	}
	return e.wire + ", text"
}

// exchanges are the calls of one recording whose whole input is visible, and the
// replies whose whole output is.
func exchanges(raw []byte) (out []exchange, said []reply) {
	var tape struct {
		Interactions []struct {
			Request, Response struct {
				Body   any
				Parsed any `yaml:"parsed_body"`
				URI    string
				URL    string
			}
		}
	}
	if yaml.Unmarshal(raw, &tape) != nil {
		return nil, nil
	}
	for _, i := range tape.Interactions {
		addr := i.Request.URI + i.Request.URL
		var e exchange
		switch {
		case strings.Contains(addr, "/chat/completions"):
			e.wire = "openai"
		case strings.Contains(addr, "/messages") && !strings.Contains(addr, "count_tokens"):
			e.wire = "anthropic"
		default:
			continue
		}
		if r, ok := replyIn(plain(i.Response.Body, i.Response.Parsed)); ok {
			said = append(said, r)
		}
		if e.ask(plain(i.Request.Body, i.Request.Parsed)) && e.answer(plain(i.Response.Body, i.Response.Parsed)) {
			out = append(out, e)
		}
	}
	return out, said
}

// reply is a text that a model wrote, and the tokens that its provider counted.
type reply struct {
	text   string
	tokens int
}

// replyIn reads a reply in one piece that is nothing but text, and more than a
// few words of it.
func replyIn(body []byte) (reply, bool) {
	var r struct {
		Content json.RawMessage
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls json.RawMessage `json:"tool_calls"`
				Thought   string          `json:"reasoning_content"`
				Thoughts  string          `json:"reasoning"`
			}
		}
		Usage struct {
			Out        int `json:"output_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Thinking int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return reply{}, false
	}
	text, ok := words(r.Content)
	for _, c := range r.Choices {
		text += c.Message.Content
		ok = ok && c.Message.ToolCalls == nil && c.Message.Thought+c.Message.Thoughts == ""
	}
	n := r.Usage.Out + r.Usage.Completion - r.Usage.Details.Thinking
	return reply{text, n}, ok && text != "" && n >= 100
}

// plain is a recorded body as bytes, in whichever way the recorder kept it.
func plain(body, parsed any) []byte {
	if parsed != nil {
		b, _ := json.Marshal(parsed)
		return b
	}
	if m, ok := body.(map[string]any); ok {
		body = m["string"]
	}
	s, _ := body.(string)
	return []byte(s)
}

// ask reads the request. It refuses one that has input which no text shows:
// pictures, files, the provider's own tools, thinking, context it manages itself.
func (e *exchange) ask(body []byte) bool {
	var r struct {
		Model    string
		System   json.RawMessage
		Thinking json.RawMessage
		Context  json.RawMessage `json:"context_management"`
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCalls  json.RawMessage `json:"tool_calls"`
			ToolCallID string          `json:"tool_call_id"`
		}
		Tools []struct {
			Type, Name, Description string
			Schema                  json.RawMessage `json:"input_schema"`
			Function                struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		ResponseFormat struct {
			JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
		OutputConfig struct {
			Format struct{ Schema json.RawMessage }
		} `json:"output_config"`
	}
	if json.Unmarshal(body, &r) != nil || r.Thinking != nil || r.Context != nil || len(r.Messages) == 0 {
		return false
	}
	e.model = r.Model
	e.call.Schema = append(r.ResponseFormat.JSONSchema.Schema, r.OutputConfig.Format.Schema...)
	var ok bool
	if e.call.System, ok = words(r.System); !ok {
		return false
	}
	for _, m := range r.Messages {
		text, ok := words(m.Content)
		if !ok || m.ToolCalls != nil || m.ToolCallID != "" || m.Role == "assistant" {
			return false
		}
		if m.Role == "system" || m.Role == "developer" {
			e.call.System += text
		} else {
			e.call.Input += text
		}
	}
	for _, tool := range r.Tools {
		t := llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema}
		if tool.Type == "function" {
			t = llm.Tool{Name: tool.Function.Name, Description: tool.Function.Description, Schema: tool.Function.Parameters}
		}
		if t.Schema == nil {
			return false
		}
		e.call.Tools = append(e.call.Tools, t)
	}
	return true
}

// words is a message's content, when it is nothing but text.
func words(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", false
		}
		text += p.Text
	}
	return text, true
}

// answer reads the count out of a reply or out of the events of a stream.
func (e *exchange) answer(body []byte) bool {
	docs := [][]byte{body}
	if !json.Valid(body) {
		docs = bytes.Split(body, []byte("\n"))
	}
	type usage struct {
		Prompt  int `json:"prompt_tokens"`
		In      int `json:"input_tokens"`
		Written int `json:"cache_creation_input_tokens"`
		Read    int `json:"cache_read_input_tokens"`
	}
	for _, d := range docs {
		var r struct {
			Usage   usage
			Message struct{ Usage usage }
		}
		if json.Unmarshal(bytes.TrimPrefix(d, []byte("data: ")), &r) != nil {
			continue
		}
		for _, u := range []usage{r.Usage, r.Message.Usage} {
			if e.wire == "openai" {
				e.reported = max(e.reported, u.Prompt)
			} else {
				e.reported = max(e.reported, u.In+u.Written+u.Read)
			}
		}
	}
	return e.reported > 0
}
