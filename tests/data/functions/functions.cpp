// Random PTX functions with counted loops, simulated against what the proof claims of them.
//
//   functions SEED COUNT   writes the PTX to standard output
//   functions              serves: for each line "SEED COUNT" of standard input it writes the number of bytes, and the PTX. It reads "LINE ITERATIONS"
//                          for each loop that the proof bounds, up to a line ".", simulates each function 14 times, and answers with one line:
//                          "right", or what is wrong
//
// A simulation ends where no loop with a claim can be reached any more, where all comes back to a state that it was in, and after 16 times the steps
// that the largest claim takes at most: at least 20,000, at most 250,000.
//
// A loop that iterates more often than was claimed is wrong. All widths, 64-bit constants and wrap-around occur.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <string>
#include <vector>
#include <map>
#include <set>
#include <random>
#include <cstring>
#include <sstream>
#include <functional>
using namespace std; typedef uint64_t u64; typedef int64_t i64; typedef unsigned __int128 u128;
mt19937_64 rng; 
static int rnd(int n){ return rng()%n; }
static bool chance(int pc){ return rnd(100)<pc; }
enum K{ADD,SUB,MUL,MULW,MAD,NEG,MIN,MAX,AND,OR,XOR,NOT,SHL,SHR,DIV,REM,SELP,SETP,CVT,MOV,CLZ,POPC,BFE,PAND,POR,PXOR,PNOT,PMOV,TID,UNK,MULHI,FLAG,LAUNCHW,CTRL};
struct Op{ bool imm=false; bool neg=false; int w=0; int r=0; u64 v=0; };
struct In{ K k; int w=32; bool s=false; int dw=32; int d=0; int q=-1; Op a,b,c; int g=-1; bool gp=true; const char* cmp=""; };
struct Blk{ vector<In> in; int term=0; int p=-1; bool pol=true; int to=-1; int line=0; string label; }; // term 0 fall,1 cbranch,2 branch,3 ret,4 exit cond
static u64 msk(int w){ return w==64?~0ull:((1ull<<w)-1); }
static const char* rn(int w){ return w==1?"%p":w==16?"%h":w==32?"%r":"%d"; }
static int cnt(int w){ return w==1?4:w==16?3:w==32?6:4; }
struct Fn{ vector<Blk> b; string name; };
static u64 edgec(int w){ 
  static const i64 e[]={0,1,2,3,4,7,8,15,16,31,32,33,63,64,100,127,128,255,256,1000,-1,-2,-3,-4,-8,-16,-100};
  int t=rnd(10);
  if(t<7) return (u64)e[rnd(sizeof e/sizeof*e)] & msk(w);
  u64 s=1ull<<(w-1);
  switch(rnd(8)){case 0:return s;case 1:return s-1;case 2:return s+1;case 3:return msk(w)-rnd(20);case 4:return (s-rnd(40))&msk(w);case 5:return (s+rnd(40))&msk(w);case 6:return rng()&msk(w);default:return (rng()&0xfff)&msk(w);} }
static Op R(int w){ Op o; o.w=w; o.r=rnd(cnt(w)); return o; }
static Op I(int w,u64 v){ Op o; o.imm=true; o.w=w; o.v=v&msk(w); return o; }
static Op RI(int w,int pc=50){ return chance(pc)?I(w,edgec(w)):R(w); }
static int W(){ int t=rnd(10); return t<6?32:t<8?64:16; }
static const char* CMP[]={"eq","ne","lt","le","gt","ge"};
static In setp(int w,bool s,int p,Op a,Op b,const char* c){ In i; i.k=SETP;i.w=w;i.s=s;i.dw=1;i.d=p;i.a=a;i.b=b;i.cmp=c; return i; }
static string ty(const In&i,bool b=false){ char t[8]; sprintf(t,"%c%d",b?'b':i.s?'s':'u',i.w); return t; }
static string os(const Op&o,bool s=false){ char t[64]; if(o.imm){ if(s||(rng()&1)){ i64 v=(i64)(o.v<<(64-o.w))>>(64-o.w); if(o.w==64&&v==INT64_MIN) sprintf(t,"0x%llx",(unsigned long long)o.v); else sprintf(t,"%lld",(long long)v);} else sprintf(t,"0x%llx",(unsigned long long)o.v);} else sprintf(t,"%s%d",rn(o.w),o.r); return t; }
static In rnd_in(const set<pair<int,int>>&keep){
  for(;;){ In i; int w=W(); i.w=w;i.dw=w; i.s=rnd(2); 
    int t=rnd(38);
    switch(t){
     case 0:case 1:case 2:case 3: i.k=ADD; i.a=R(w); i.b=RI(w,65); break;
     case 4:case 5: i.k=SUB; i.a=RI(w,15); i.b=RI(w,45); if(i.a.imm&&i.b.imm) i.a=R(w); break;
     case 6: i.k=MUL; i.a=R(w); i.b=RI(w,75); break;
     case 7: if(w==64){w=32;} i.w=w; i.dw=2*w; i.k=MULW; i.a=R(w); i.b=RI(w,75); break;
     case 8: i.k=MAD; i.a=R(w); i.b=RI(w,75); i.c=RI(w,40); break;
     case 9: i.k=NEG; i.s=true; i.a=R(w); break;
     case 10:case 11:case 12: i.k=MIN; i.a=R(w); i.b=RI(w,60); break;
     case 13:case 14:case 15: i.k=MAX; i.a=R(w); i.b=RI(w,50); break;
     case 16:case 17:case 18: i.k=AND; i.a=R(w); i.b=chance(60)?I(w,chance(50)?msk(1+rnd(7)):~msk(1+rnd(5))):RI(w,30); break;
     case 19: i.k=OR; i.a=R(w); i.b=RI(w,60); break;
     case 20: i.k=XOR; i.a=R(w); i.b=RI(w,60); break;
     case 21: i.k=NOT; i.a=R(w); break;
     case 22: i.k=SHL; i.a=R(w); i.b=chance(75)?I(32,rnd(chance(80)?6:70)):R(32); break;
     case 23:case 24: i.k=SHR; i.a=R(w); i.b=chance(75)?I(32,rnd(chance(80)?6:70)):R(32); break;
     case 25: i.k=DIV; i.a=R(w); i.b=I(w,chance(80)?1+rnd(40):edgec(w)); if(i.b.v==0) i.b.v=3; if(i.s&&i.b.v==msk(w)) i.b.v=2; break;
     case 26: i.k=REM; i.a=R(w); i.b=I(w,chance(80)?1+rnd(40):edgec(w)); if(i.b.v==0) i.b.v=3; if(i.s&&i.b.v==msk(w)) i.b.v=2; break;
     case 27:case 28: i.k=SELP; i.a=RI(w,50); i.b=RI(w,50); i.c=R(1); break;
     case 29:case 30: i=setp(w,i.s,rnd(4),R(w),RI(w,60),CMP[rnd(6)]); if(chance(15)) {i.q=(i.d+1+rnd(3))%4;} break;
     case 31:case 32:{ i.k=CVT; int f=W(); i.dw=W(); i.w=f; i.a=R(f); if(f==i.dw) continue; break;}
     case 33: i.k=MOV; i.a=RI(w,60); break;
     case 34: i.k=chance(50)?CLZ:POPC; if(w==16) w=32; i.w=w; i.dw=32; i.a=R(w); break;
     case 35: i.k=BFE; i.w=i.dw=32; i.s=false; i.a=R(32); i.b=I(32,rnd(32)); i.c=I(32,rnd(20)); break;
     case 36: { int z=rnd(5); i.k=z==0?PAND:z==1?POR:z==2?PXOR:z==3?PNOT:PMOV; i.w=i.dw=1; i.a=R(1); i.b=R(1); i.d=rnd(4); break;}
     case 37: i.k=UNK; break;
    }
    if(i.k!=SETP) i.d=rnd(cnt(i.dw));
    if(keep.count({i.dw,i.d})||(i.q>=0&&keep.count({1,i.q}))) continue;
    if(chance(8)){ i.g=rnd(4); i.gp=rnd(2);} 
    return i; } }
static string text(const In&i){
  char g[16]=""; if(i.g>=0) sprintf(g,"@%s%%p%d ",i.gp?"":"!",i.g);
  string D=string(rn(i.dw))+to_string(i.d); ostringstream o; o<<g;
  switch(i.k){
   case ADD:o<<"add."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case SUB:o<<"sub."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case MUL:o<<"mul.lo."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case MULHI:o<<"mul.hi."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case MULW:o<<"mul.wide."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case MAD:o<<"mad.lo."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b)<<", "<<os(i.c);break;
   case NEG:o<<"neg.s"<<i.w<<" "<<D<<", "<<os(i.a);break;
   case MIN:o<<"min."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case MAX:o<<"max."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case AND:o<<"and."<<ty(i,1)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case OR:o<<"or."<<ty(i,1)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case XOR:o<<"xor."<<ty(i,1)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case NOT:o<<"not."<<ty(i,1)<<" "<<D<<", "<<os(i.a);break;
   case SHL:o<<"shl."<<ty(i,1)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case SHR:o<<"shr."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case DIV:o<<"div."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case REM:o<<"rem."<<ty(i)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case SELP:o<<"selp."<<ty(i,1)<<" "<<D<<", "<<os(i.a)<<", "<<os(i.b)<<", "<<os(i.c);break;
   case SETP:o<<"setp."<<i.cmp<<"."<<ty(i)<<" "<<D; if(i.q>=0) o<<"|%p"<<i.q; o<<", "<<os(i.a)<<", "<<os(i.b);break;
   case CVT:o<<"cvt."<<(i.s?'s':'u')<<i.dw<<"."<<ty(i)<<" "<<D<<", "<<os(i.a);break;
   case MOV:o<<"mov.b"<<i.w<<" "<<D<<", "<<os(i.a);break;
   case CLZ:o<<"clz.b"<<i.w<<" "<<D<<", "<<os(i.a);break;
   case POPC:o<<"popc.b"<<i.w<<" "<<D<<", "<<os(i.a);break;
   case BFE:o<<"bfe.u32 "<<D<<", "<<os(i.a)<<", "<<os(i.b)<<", "<<os(i.c);break;
   case PAND:o<<"and.pred "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case POR:o<<"or.pred "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case PXOR:o<<"xor.pred "<<D<<", "<<os(i.a)<<", "<<os(i.b);break;
   case PNOT:o<<"not.pred "<<D<<", "<<os(i.a);break;
   case PMOV:o<<"mov.pred "<<D<<", "<<os(i.a);break;
   case UNK:o<<"ld.volatile.global.u"<<i.w<<" "<<D<<", [%a]";break;
   default: break; }
  o<<";"; return o.str(); }
static i64 sx(u64 v,int w){ return w==64?(i64)v:(i64)(v<<(64-w))>>(64-w); }
// Cheap to begin anew: each run has its own.
struct Mix{ u64 state; void seed(u64 s){ state=s; } u64 operator()(){ u64 z=(state+=0x9e3779b97f4a7c15); z=(z^(z>>30))*0xbf58476d1ce4e5b9; z=(z^(z>>27))*0x94d049bb133111eb; return z^(z>>31); } };
static Mix sim;
// Registers of all widths, then constants.
static int slot(int w,int r){ return (w==1?0:w==16?8:w==32?16:24)+r; }
// An instruction whose operands are slots.
struct Step{ K k; int w; bool s; bool gp; char c0,c1; int dw; int d,q,g,a,b,c; };
struct Flow{ vector<Step> steps; int term; int p; bool pol; int to; };
struct Sim{ vector<u64> v; vector<Flow> flow; };
static Sim lower(const Fn&f){
  Sim m; m.v.resize(32);
  auto from=[&](const Op&o){ if(!o.imm) return slot(o.w?o.w:32,o.r); m.v.push_back(o.v); return (int)m.v.size()-1; };
  for(auto&B:f.b){ Flow to{{},B.term,B.p,B.pol,B.to};
    for(auto&i:B.in) to.steps.push_back({i.k,i.w,i.s,i.gp,i.cmp[0],i.cmp[0]?i.cmp[1]:'\0',i.dw,slot(i.dw,i.d),i.q<0?-1:slot(1,i.q),i.g<0?-1:slot(1,i.g),from(i.a),from(i.b),from(i.c)});
    m.flow.push_back(to); }
  return m; }
// Says whether the instruction read what is not known.
static bool run1(u64*v0,const Step&i){
  if(i.g>=0 && (v0[i.g]!=0)!=i.gp) return false;
  u64 a=v0[i.a],b=v0[i.b],c=v0[i.c],v=0; int w=i.w;
  switch(i.k){
   case ADD:v=a+b;break;case SUB:v=a-b;break;case MUL:v=a*b;break;
   case MULW: v=i.s?(u64)(sx(a,w)*sx(b,w)):a*b; break;
   case MULHI: v=i.s?(u64)(((__int128)sx(a,w)*sx(b,w))>>w):(u64)(((u128)a*b)>>w);break;
   case MAD:v=a*b+c;break;case NEG:v=0-a;break;
   case MIN:v=i.s?(sx(a,w)<sx(b,w)?a:b):(a<b?a:b);break;
   case MAX:v=i.s?(sx(a,w)>sx(b,w)?a:b):(a>b?a:b);break;
   case AND:v=a&b;break;case OR:v=a|b;break;case XOR:v=a^b;break;case NOT:v=~a;break;
   case SHL:v=b>=(u64)w?0:a<<b;break;
   case SHR: if(i.s){ v=(u64)(sx(a,w)>>(b>=(u64)w?w-1:b)); } else v=b>=(u64)w?0:a>>b; break;
   case DIV: if(i.s) v=sx(a,w)/sx(b,w); else v=a/b; break;
   case REM: if(i.s) v=sx(a,w)%sx(b,w); else v=a%b; break;
   case SELP:v=c?a:b;break;
   case SETP:{ bool t; if(i.c0=='e')t=a==b; else if(i.c0=='n')t=a!=b; else { if(i.s){ a^=1ull<<(w-1); b^=1ull<<(w-1); } t=i.c0=='l'?a<b:a>b; if(i.c1=='e') t=t||a==b; } v=t; if(i.q>=0) v0[i.q]=!t; break;}
   case CVT: v=i.s?(u64)sx(a,w):a; break;
   case MOV:v=a;break;
   case CLZ:v=a?__builtin_clzll(a)-(64-w):w;break;
   case POPC:v=__builtin_popcountll(a);break;
   case BFE:{u64 l=c&255,pz=b&255; v= l==0?0:(a>>pz)&msk(l>=32?32:l); break;}
   case PAND:v=a&b;break;case POR:v=a|b;break;case PXOR:v=a^b;break;case PNOT:v=!a;break;case PMOV:v=a;break;
   case UNK:v=chance(50)?edgec(w):sim();break;
   default:break; }
  v0[i.d]=v&msk(i.dw);
  return i.k==UNK;
}
static Fn gen(int id){
  Fn f; f.name="f"+to_string(id); int lab=0; set<pair<int,int>> keep;
  auto nb=[&](string l=""){ Blk b; b.label=l; f.b.push_back(b); return (int)f.b.size()-1; };
  nb();
  // initial values
  for(int w:{16,32,64}) for(int r=0;r<cnt(w);r++){ In i; i.w=i.dw=w; i.d=r; int t=rnd(10); 
     if(t<5){ i.k=MOV; i.a=I(w,edgec(w)); f.b[0].in.push_back(i);} 
     else { i.k=UNK; f.b[0].in.push_back(i); if(t<8){ In j; j.w=j.dw=w; j.d=r; j.a.w=w; j.a.r=r; int z=rnd(4); if(z==0){j.k=AND; j.b=I(w,msk(1+rnd(12)));} else if(z==1){ j.k=MIN; j.s=false; j.b=I(w,rnd(3000)); } else if(z==2){ j.k=REM; j.s=rnd(2); j.b=I(w,1+rnd(900)); } else { j.k=SHR; j.s=false; j.b=I(32,w-1-rnd(11)); } f.b[0].in.push_back(j);} } }
  for(int p=0;p<4;p++) f.b[0].in.push_back(setp(32,false,p,R(32),RI(32,60),CMP[rnd(6)]));
  function<void(int)> loop=[&](int depth){
    int w=W(); int c=rnd(cnt(w)); int me=lab++; int head=nb("$L"+to_string(id)+"_"+to_string(me)); (void)head;
    bool prot=chance(85)&&!keep.count({w,c}); if(prot) keep.insert({w,c});
    auto body=[&](int n){ for(int k=0;k<n;k++) f.b.back().in.push_back(rnd_in(keep)); };
    Op C; C.w=w; C.r=c;
    auto upd=[&](){ 
      auto ad=[&](In i){ f.b.back().in.push_back(i); };
      In i; i.w=i.dw=w; i.d=c; i.a=C; i.s=rnd(2); int t=rnd(16);
      if(t<5){ i.k=ADD; u64 v=chance(85)?1+rnd(5):edgec(w); if(rnd(2)) v=0-v; i.b=I(w,v); ad(i); }
      else if(t<7){ i.k=SUB; i.b=I(w,chance(85)?1+rnd(5):edgec(w)); ad(i);} 
      else if(t==7){ i.k=SHR; i.b=I(32,1+rnd(3)); ad(i);} 
      else if(t==8){ i.k=SHL; i.b=I(32,1+rnd(3)); ad(i);} 
      else if(t==9){ i.k=DIV; i.b=I(w,2+rnd(5)); ad(i);} 
      else if(t==10){ // saturated
        Op o=RI(w,50); In j=i; j.k=MAX; j.s=chance(15); j.b=o; ad(j); In k=i; k.k=SUB; k.b=o; ad(k); }
      else if(t==11){ Op o=RI(w,50); In j; j.w=j.dw=w; j.k=MIN; j.s=rnd(2); j.a=C; j.b=o; j.d=rnd(cnt(w)); if(j.d==c) j.d=(c+1)%cnt(w); ad(j); In k=i; k.k=SUB; k.b.w=w;k.b.r=j.d; ad(k);} 
      else if(t==12){ i.k=ADD; i.b=R(w); ad(i);} 
      else if(t==13){ In j; j.w=j.dw=w; j.k=AND; j.a=C; j.b=I(w,msk(1+rnd(4))); j.d=(c+1)%cnt(w); ad(j); In k=i; k.k=SUB; k.b.w=w;k.b.r=j.d; ad(k); In l=i; l.k=ADD; l.b=I(w,(u64)(rnd(9)-4)); ad(l);} 
      else if(t==14){ In j=i; j.k=SELP; Op o; j.a=I(w,1+rnd(4)); j.b=I(w,rnd(4)); j.c=R(1); j.d=(c+1)%cnt(w); ad(j); In k=i; k.k=rnd(2)?ADD:SUB; k.b.w=w;k.b.r=j.d; ad(k);} 
      else { i.k=MUL; i.b=I(w,2+rnd(4)); ad(i);} 
      if(chance(10)) f.b.back().in.back().g=rnd(4);
    };
    body(rnd(3));
    bool early=chance(25); if(early) upd();
    if(chance(35)){ // diamond
      f.b.back().term=1; f.b.back().p=rnd(4); f.b.back().pol=rnd(2); int from=f.b.size()-1; nb(); body(1+rnd(2)); if(chance(30)) upd(); string l="$S"+to_string(id)+"_"+to_string(lab++); int t=nb(l); f.b[from].to=t; body(rnd(2)); }
    if(depth<2&&chance(depth?10:25)){ loop(depth+1); nb(); }
    if(chance(15)){ // early way out
      f.b.back().term=4; f.b.back().p=rnd(4); f.b.back().pol=rnd(2); nb(); body(rnd(2)); }
    if(!early||chance(20)) upd();
    body(rnd(2));
    // condition
    int p=rnd(4); Op o=chance(65)?I(w,edgec(w)):R(w); 
    Op cc=C; int cw=w; 
    if(chance(12)){ In j; j.k=CVT; j.w=w; j.dw=w==32?64:32; j.s=rnd(2); j.a=C; j.d=rnd(cnt(j.dw)); if(!keep.count({j.dw,j.d})){ f.b.back().in.push_back(j); cc.w=j.dw; cc.r=j.d; cw=j.dw; o=RI(cw,70);} }
    else if(chance(12)){ In j; j.k=rnd(2)?ADD:AND; j.w=j.dw=w; j.a=C; j.b=I(w,j.k==ADD?edgec(w):~msk(1+rnd(4))); j.d=(c+1)%cnt(w); if(!keep.count({w,j.d})){ f.b.back().in.push_back(j); cc.r=j.d; } }
    In s=setp(cw,rnd(2),p,cc,o,CMP[rnd(6)]); if(chance(10)) s.q=(p+1+rnd(3))%4; f.b.back().in.push_back(s);
    if(chance(20)){ In j; j.k=rnd(2)?PAND:POR; j.w=j.dw=1; j.d=p; j.a.w=1;j.a.r=p; j.b=R(1); f.b.back().in.push_back(j);} 
    f.b.back().term=1; f.b.back().p=p; f.b.back().pol=rnd(2); f.b.back().to=head;
    if(prot) keep.erase({w,c});
    nb();
  };
  loop(0);
  if(chance(40)){ for(int k=rnd(4);k>0;k--) f.b.back().in.push_back(rnd_in(keep)); loop(0);} 
  f.b.back().term=3;
  return f; }
static string ptx(u64 seed,int n,vector<Fn>&fs){
  rng.seed(seed); string o; int line=1; auto put=[&](const string&s){ o+=s; o+='\n'; line++; };
  put(".version 9.0"); put(".target sm_90"); put(".address_size 64");
  for(int k=0;k<n;k++){ Fn f=gen(k); 
    put(".visible .entry "+f.name+"(.param .u64 pp)"); put("{"); put(".reg .b16 %h<3>; .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %p<4>; .reg .b64 %a;"); put("ld.param.u64 %a, [pp];");
    for(size_t b=0;b<f.b.size();b++){ Blk&B=f.b[b]; if(B.label.empty()) B.label="$M"+to_string(k)+"_"+to_string(b); B.line=line+1; put(B.label+":"); for(auto&i:B.in) put(text(i));
      char g[32]; sprintf(g,"@%s%%p%d ",B.pol?"":"!",B.p);
      if(B.term==1) put(string(g)+"bra "+ (f.b[B.to].label.empty()?string("?"):f.b[B.to].label)+";"); else if(B.term==3) put("ret;"); else if(B.term==4) put(string(g)+"ret;"); }
    put("}"); fs.push_back(f);} 
  return o; }
// A function's loops, with the iterations that are claimed for the blocks at their heads.
struct Run{ const Fn&f; Sim m; vector<u64> claimed; vector<bool> leads; long most; };
static string wrong(const Run&r,u64 seed,size_t b,const char*seen){ const Blk&B=r.f.b[b];
  return "seed "+to_string(seed)+" "+r.f.name+" line "+to_string(B.line)+" label "+B.label+" claimed "+to_string(r.claimed[b])+" seen "+seen; }
// Most back edges after which a state is looked for again: one that comes back mostly does so soon.
static const long PERIOD=256;
// What is wrong in one run, or nothing.
static string simulate(Run&r,u64 seed,int t){
  sim.seed(seed*1000+t*77+1); u64*v=r.m.v.data(); for(int w:{1,16,32,64}) for(int i=0;i<8;i++) v[slot(w,i)]=(w==1?sim()&1:sim())&msk(w);
  vector<u64> rounds(r.m.flow.size(),0);
  // The state at one of the back edges, and how many there were then: it is taken anew after twice as many, and if something unknown was read since.
  u64 then[32]; vector<u64> counted; size_t place=~0ull; long backs=0,next=1; bool unknown=true; long left=-1;
  long steps=0; int from=-1;
  for(size_t b=0;steps<r.most&&r.leads[b];){
    if(from>=(int)b){
      rounds[b]++;
      if(left<0){
        backs++;
        if(!unknown&&b==place&&backs-next/2<=PERIOD&&!memcmp(then,v,sizeof then)){ left=backs-next/2; counted=rounds; }
        else if(backs>=next){ next=2*backs; place=b; memcpy(then,v,sizeof then); unknown=false; }
      } else if(--left==0){
        // The same once more: a count that was not reset grows for ever.
        for(size_t k=0;k<rounds.size();k++) if(r.claimed[k]!=~0ull&&rounds[k]>counted[k]) return wrong(r,seed,k,"without end");
        return "";
      }
    } else rounds[b]=0; // entered from the front: begins anew
    if(rounds[b]>r.claimed[b]) return wrong(r,seed,b,to_string(rounds[b]).c_str());
    const Flow&B=r.m.flow[b]; for(auto&i:B.steps) unknown|=run1(v,i);
    steps+=B.steps.size()+1; from=b;
    bool is=B.p>=0&&(v[slot(1,B.p)]!=0)==B.pol;
    if(B.term==3||(B.term==4&&is)) return "";
    b=B.term==1&&is?B.to:b+1; }
  return ""; }
static string check(u64 seed,const vector<Fn>&fs,const map<int,u64>&claim){
  for(auto&f:fs){ Run r{f,{},vector<u64>(f.b.size(),~0ull),vector<bool>(f.b.size(),false),0}; bool any=false; u64 largest=0,length=0;
    for(size_t b=0;b<f.b.size();b++){ length+=f.b[b].in.size()+1; for(int d=0;d<=1&&r.claimed[b]==~0ull;d++){ auto c=claim.find(f.b[b].line-1+d); if(c!=claim.end()){ r.claimed[b]=c->second; any=true; if(c->second<250000){ r.leads[b]=true; largest=max(largest,c->second); } } } }
    if(!any) continue;
    // Blocks from which one with a claim can be reached, and how long that is worth looking at.
    for(bool more=true;more;){ more=false; for(size_t b=0;b<f.b.size();b++){ const Blk&B=f.b[b]; bool l=(B.term!=2&&B.term!=3&&b+1<f.b.size()&&r.leads[b+1])||(B.to>=0&&r.leads[B.to]); if(l&&!r.leads[b]) r.leads[b]=more=true; } }
    r.most=min<u64>(250000,max<u64>(20000,16*(largest+1)*length)); r.m=lower(f);
    for(int t=0;t<14;t++){ string said=simulate(r,seed,t); if(!said.empty()) return said; } }
  return "right"; }
int main(int argc,char**argv){
  vector<Fn> fs;
  if(argc==3){ fputs(ptx(atoll(argv[1]),atoi(argv[2]),fs).c_str(),stdout); return 0; }
  u64 seed; int n;
  while(scanf("%llu %d",(unsigned long long*)&seed,&n)==2){
    fs.clear(); string text=ptx(seed,n,fs); printf("%zu\n%s",text.size(),text.c_str()); fflush(stdout);
    map<int,u64> claim; int line; unsigned long long most; while(scanf("%d %llu",&line,&most)==2) claim[line]=most;
    if(getchar()!='.') return 2;
    puts(check(seed,fs,claim).c_str()); fflush(stdout); }
}
