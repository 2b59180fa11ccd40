package markup

import "testing"

func TestFill(t *testing.T) {
	to, _ := Web("https://example.org/?a=1&b='2'")
	got := Fill(`<p class="{}">{}{}</p><a href="{}">{}</a>{}`, `x" onload="y`, "<b>", Fill(`<i>{}</i>`, 3), to, "go", If(false, `<hr>`)).String()
	want := `<p class="x&#34; onload=&#34;y">&lt;b&gt;<i>3</i></p><a href="https://example.org/?a=1&amp;b=&#39;2&#39;">go</a>`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, wrong := range map[string]func(){
		"too few":          func() { Fill(`{}{}`, 1) },
		"too many":         func() { Fill(`{}`, 1, 2) },
		"a text as a link": func() { Fill(`<a href="{}">`, "javascript:alert(1)") },
		"a node as a link": func() { Fill(`<form action="{}">`, Text("/x")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s passes", name)
				}
			}()
			wrong()
		}()
	}
}
