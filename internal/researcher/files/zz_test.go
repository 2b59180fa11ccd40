package files_test
import ("testing"; "encoding/json"; "fmt"
 marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden")
func TestZZ(t *testing.T){
 h:=newHome(t)
 for _,q:=range []string{"What does zorblax [7] mean?", "Explain [12] zqx [3]", "\"[1]\" Zorblaxian [2]?", "Who is Zor[9]blax?"} {
  res,err:=h.Research(t.Context(), marchwarden.Request{Question:q}, nil)
  if err!=nil { t.Log("ERR",q,err); continue}
  b,_:=json.Marshal(res.Answer); fmt.Println(q, string(b), len(res.Citations))
 }
}
