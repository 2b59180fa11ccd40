package judge

import (
	"math"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// pointers begin a sentence that speaks of something named before it.
var pointers = set("he she it they this these those that his her its their such here there")

var (
	hedges = set(`may might could can possibly perhaps likely probably suggest suggests suggested appear appears appeared seem seems seemed
		potentially potential about approximately roughly some possible believed thought often usually generally typically tend tends sometimes`)
	reports   = set("claim claims claimed reportedly alleged allegedly according said says rumored rumoured")
	universal = set("all every always only none never entirely completely must each any exclusively solely everyone first last largest smallest most best worst highest lowest")
	upward    = set(`increase increases increased increasing higher more greater rise rises rising rose grow grows grew growing improve improves improved better longer larger
		elevated enhance enhances enhanced promote promotes promoted up faster stronger raise raised raises gain gains boost boosts upregulated activates activate worsen exacerbate`)
	downward = set(`decrease decreases decreased decreasing lower less fewer reduce reduces reduced reducing decline declines declined fall falls fell falling drop drops dropped
		shorter smaller worse diminish diminished suppress suppresses suppressed inhibit inhibits inhibited down slower weaker impair impairs impaired loss lose prevent prevents
		prevented downregulated block blocks blocked limit limits`)
	negations = set("not no never none cannot neither nor")
	denials   = set(`not no never none nobody nothing neither nor cannot without unable rarely hardly barely lack lacks lacked lacking unlikely impossible
		fail fails failed false myth absence absent little insufficient deny denied denies refuse refused unrelated`)
)

// opposites are words of which no two of a pair hold of one thing at once.
var opposites = lexicon.Pairs(`increase decrease; increase reduce; rise fall; high low; higher lower; highest lowest; more less; more fewer; most least; largest smallest; larger smaller;
	better worse; best worst; accept reject; true false; before after; early late; effective ineffective; necessary unnecessary; resistant susceptible; resistant sensitive;
	easy difficult; win lose; succeed fail; mandatory optional; majority minority; improve worsen; strong weak; fast slow; include exclude; support oppose; grow shrink; gain loss;
	allow forbid; permit prohibit; legal illegal; always never; often rarely; common rare; safe dangerous; safe unsafe; possible impossible; activate inhibit; promote inhibit; promote prevent;
	cause prevent; cold warm; cooling warming; cool warm; hot cold; positive negative; male female; man woman; born died; alive dead; first last; start end; begin end; open close; old young; old new;
	rich poor; north south; east west; northern southern; eastern western; left right; upper lower; north east; public private; natural artificial; single married; married divorced;
	actor director; mother father; brother sister; son daughter; husband wife; king queen; with without; benefit harm; beneficial harmful; upregulate downregulate; induce suppress; enhance impair;
	enhance reduce; elevated reduced; protect damage; protective harmful; acquired sold; buy sell; before since; inside outside; above below; up down; minimum maximum; minor major; small large; big small; short long;
	amateur professional; domestic foreign; major minor; partial complete; full empty; guilty innocent; hero villain; comedy drama; fiction documentary; incapable capable; unable able; unknown known`)

// spoken is how the two say what they say: denial, doubt, scope, direction.
func (p *pair) spoken(t *table) {
	var near []sentence
	for _, i := range p.best {
		near = append(near, p.ev.sentences[i])
	}
	var first sentence
	if len(near) > 0 {
		first = near[0]
	}
	cn, en := marks(p.claim, denials), marks(first, denials)
	t.flag("denial_claim_only", cn > 0 && en == 0)
	t.flag("denial_evidence_only", cn == 0 && en > 0)
	t.flag("polarity_conflict", marks(p.claim, negations)%2 != marks(first, negations)%2)
	ch, eh := marks(p.claim, hedges), marks(first, hedges)
	t.flag("doubt_claim_only", ch > 0 && eh == 0)
	t.flag("doubt_evidence_only", ch == 0 && eh > 0)
	t.flag("hearsay_evidence_only", marks(first, reports) > 0 && marks(p.claim, reports) == 0)
	t.flag("scope_claim_only", marks(p.claim, universal) > 0 && marks(first, universal) == 0)
	t.add("scope_claim", math.Log1p(float64(marks(p.claim, universal))))
	up, down := marks(p.claim, upward), marks(p.claim, downward)
	eup, edown := marks(first, upward), marks(first, downward)
	t.flag("direction_conflict", up > down && edown > eup || down > up && eup > edown)
	t.flag("direction_same", up > down && eup > edown || down > up && edown > eup)
	opposite := 0
	for _, stem := range p.claim.words {
		if first.holds[stem] {
			continue
		}
		for _, o := range opposites[stem] {
			if first.holds[o] && !p.claim.holds[o] {
				opposite++
				break
			}
		}
	}
	t.add("opposites", math.Log1p(float64(opposite)))
}

func marks(s sentence, list map[string]bool) int {
	n := 0
	for _, t := range s.tokens {
		w := strings.ReplaceAll(strings.ToLower(t.Text), "’", "'")
		if list[w] || strings.HasSuffix(w, "n't") && list["not"] {
			n++
		}
	}
	return n
}
