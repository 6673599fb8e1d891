package main
import ("fmt";"go/types";"os";"path/filepath";"sort";"golang.org/x/tools/go/packages")
func main(){
 c:=&packages.Config{Mode:packages.NeedName|packages.NeedFiles|packages.NeedSyntax|packages.NeedTypes|packages.NeedTypesInfo,Dir:os.Args[1]}
 ps,err:=packages.Load(c,os.Args[2]); if err!=nil{panic(err)}
 p:=ps[0]; e:=map[string]map[string]map[string]bool{}
 f:=func(o types.Object)string{return filepath.Base(p.Fset.Position(o.Pos()).Filename)}
 for id,o:=range p.TypesInfo.Uses{ if o==nil||o.Pkg()!=p.Types{continue}
  if v,ok:=o.(*types.Var);ok&&v.IsField(){continue}
  if o.Parent()!=p.Types.Scope(){ if fn,ok:=o.(*types.Func);!ok||fn.Type().(*types.Signature).Recv()==nil{continue}}
  a:=filepath.Base(p.Fset.Position(id.Pos()).Filename); b:=f(o); if a==b{continue}
  if e[a]==nil{e[a]=map[string]map[string]bool{}}; if e[a][b]==nil{e[a][b]=map[string]bool{}}; e[a][b][o.Name()]=true}
 var as []string; for a:=range e{as=append(as,a)}; sort.Strings(as)
 for _,a:=range as{ var bs []string; for b:=range e[a]{bs=append(bs,b)}; sort.Strings(bs); for _,b:=range bs{ var ns []string; for n:=range e[a][b]{ns=append(ns,n)}; sort.Strings(ns); fmt.Println(a,"->",b,ns)}}
}
