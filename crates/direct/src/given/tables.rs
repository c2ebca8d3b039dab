//! The stored schedules: one row for each source, in it one word for each chunk of its share, in it one letter for each node.
//!
//! The letter says how the chunk comes to the node: `a` in the first step over its first in-link, by increasing tail, then the
//! other in-links, then those in the second step, and so on; `.` is the source itself. Links carry no more in any step than makes
//! the bandwidth optimal. `tests/stored.rs` finds them and writes this file; whether they are right is tested each time one is used.

use super::Table;

pub(super) const TABLES: [Table; 8] = [
    // The diamond: 3 steps, 7/8.
    Table {
        degree: 2,
        rows: &[
            ".ffadeea .ffadfea",
            "a.deedfb a.dcfdfb",
            "ca.facee ea.facfd",
            "fbf.bfcd cbe.becf",
            "decd.aae dece.aae",
            "edebf.bf edebf.bf",
            "bfacce.c bcaecf.c",
            "febfebd. fcbdebd.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 2,
        rows: &[
            ".accedae .acfdfae",
            "e.aaecdf f.aaecfc",
            "fd.edfba fd.efdba",
            "ace.caef acf.caef",
            "cebb.ede cebb.eec",
            "dfdfa.fb dedfa.fb",
            "effdbb.d effdbb.d",
            "bbecfec. bbeeffc.",
        ],
    },
    // The modified de Bruijn graph of d = 2, n = 3: 4 steps, 7/8.
    Table {
        degree: 2,
        rows: &[
            ".aaegegg .aagcchf",
            "h.baehfc h.baggce",
            "ef.haafd eg.daahf",
            "deh.hdaa gfh.dhaa",
            "abec.gee abde.egg",
            "fhgbf.db fggbh.eb",
            "gdffbb.h chefbb.h",
            "bcfgffb. bechefb.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 2,
        rows: &[
            ".hefadfa .ecdaega",
            "a.gfbfec a.eebgcf",
            "ba.hfhge ba.hchee",
            "cbf.eadh ebg.dafg",
            "hcac.eaf heae.gad",
            "fgbgg.bh dgbge.bg",
            "gfhahf.b gfhahc.b",
            "edfbfbh. fhdbgbh.",
        ],
    },
    // The modified de Bruijn graph of d = 2, n = 4: 5 steps, 15/16.
    Table {
        degree: 2,
        rows: &[
            ".acigahjiicejjhf .aiehahhiiceiihf",
            "i.aacfcggegjggij j.aahdcjjjeggejh",
            "ef.iabfhcggcigii eg.iabffcgicijgg",
            "fgi.jgaajjhieejc hij.jiaahhfhechc",
            "cgid.ejeaaggjjgj cdgd.iegaajjggii",
            "jhiid.hheiaahjfd fgjjf.dfggaahifd",
            "ghjfhi.jfdfhaajh jjfhih.ihddjaajh",
            "deggigi.jjijhhaa deggigj.hhjffdaa",
            "abccggge.iiiijgi abichcei.jeigijh",
            "jjbbchicg.ijjheg jjbbedgcg.jghheg",
            "hifhbhiijc.hffdb hihhbjjiic.hjfdb",
            "gijjjibbfhh.ccce ijhhijbbhfj.cgci",
            "gddejfggbbgg.iij ihdfehggbbii.iii",
            "hijjfihdigbbj.he gjhjdjddeebbi.gg",
            "ihhjjjjjdfhdbb.j ifggijihdjddbb.j",
            "bceigejjihhfddb. bceggciijijidhb.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 2,
        rows: &[
            ".gejcjidagfhegia .jihcghdajdigeja",
            "a.gjeiihbihjcige a.giejejbiigcjig",
            "ga.gijejdajgdjeh ca.idigjgagifiig",
            "cbg.diihgbgjfige gbi.figgdbgjdiei",
            "ecag.gfjhcaghcjg ecaj.ehggeaijcfg",
            "bebhj.ifccfhgiic bgbhi.gfcjjhejic",
            "gdiagd.jfjjagdfh fjhahd.iidiajfhi",
            "gdibgjj.fjibihji ihibfhh.jdgbhdhj",
            "igcjaiie.iehagch jigiaggi.ieiaggj",
            "igeibjcij.cgbjgj jecebgceh.cjbgcj",
            "hjdghadiie.ijahi djhggafgei.jiadj",
            "difigbdiegi.gbhi fidjibjgggj.ibdh",
            "ihjejfacjhhc.faf hihfjfacihjc.jaf",
            "jfjcihbhhhhei.bd jhjchhbhjfieh.bd",
            "ihjdhejajfddhh.b jfjdihjahjhfih.b",
            "hjfhjcjbigbfjhj. hihfjchbihbdjej.",
        ],
    },
    // The modified de Bruijn graph of d = 4, n = 2: 3 steps, 15/16.
    Table {
        degree: 4,
        rows: &[
            ".eaiafiikeiejjjl .aaeeeejkieeklle .aeaejkikiifleef .ieaafljkiifkeej",
            "h.lijealjkfghhla i.jkfafalfjkekge i.jkfafaljlkekfi h.giiiaikkfghkla",
            "ll.bkkkkjeejjeif jk.bjgkkgaiagfjj jj.llkkkfgaagflh kj.fjgjlfaaefjij",
            "jhj.hhijglkbkael lhj.hhkillljlahb lll.kkhkhhkkhhab jlk.kkhlghhbkeaf",
            "eifc.fjjkllfllef eiic.bffijjfilff aibf.bjfjjeliijk aebe.fjjkiiekijj",
            "lklkf.jbjfhlekbg eikgb.bfejkjiifk eifgb.jkhhkjjibj jjgjk.bbefkkjljg",
            "ffchki.laegjjiij ljklkk.hegbcjflh llcfll.keefcgfih jfgjki.hagbhjjki",
            "hkhilll.lfliahhc kghjlil.llliaggi hiiigkh.jbhlhhcc kklkgjl.hbhlfkcg",
            "fiidilkh.kcfieik fbidjelj.lglllee bbehjeee.jiillie beilejih.kchijki",
            "lkfgcfjcl.lielgg gghjiglcl.libkgi ikkgccfgi.jjfifk kghjfcfgi.jibkfk",
            "ijjkgkldfc.lfkgg jfllkiidbf.dellh klllllkhfg.dgfkk ifjlggjgbc.hkjkl",
            "jhlhhjilckg.gbii gliiilklckg.cglh gghiliiigik.cghd kjkllhgjgll.hbhd",
            "ccejieeeijik.gji kgdfjhilkeee.cjj ghdfjhgjjkel.cjj cckeejeeijjj.ikk",
            "ilgjfdcfjifgi.kl iljkhdcfekfgk.kl edfjdlgeijjii.kk ldfgdjeeiiijl.ie",
            "ffihiiildhglji.i ijjkgjdgfddhij.l kkgljgdghdkgfj.l fjihiklkdgdhkj.l",
            "ghlkhlgilljkddh. dekelihijlhklhd. deeeejgiiijildl. hkkiilhkhhkkdgd.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 4,
        rows: &[
            ".kliekfhakfeilla .iliaefiaeleijia .kllekjfehifajjf .lllaelfejjfajjf",
            "a.ifeijjfllghaji e.jjikjffhikbeji k.kfkjflblflhalg a.ljeljlbiffbefe",
            "bj.lbeelieklifie bj.kflajeijielee hk.iblafillfclel fl.lfiejihklcjif",
            "cji.eifjcijjejij gja.cieiiekkifkk hia.ceiigejilfjk cli.gjflcifiejfe",
            "diif.ajeeagkebgi hkfk.eieiaiklfgi hejl.alliflglbkg dljl.ijieekjefje",
            "lejfd.lijfkglckg ealii.llifkgjckg jefjj.iklbgklggl hakjd.kiibgjfgli",
            "lfjfhb.ijfkjhdej iflglh.gklighdah ibiglf.jfljjfeaj lbjjhb.iffkjfhkj",
            "lekkhcj.hkaijkhl eckjigk.fgekfelk eckkilg.jcakjehk lefjhck.lceklglk",
            "jkgijlgg.kbeklbl jjhijfbk.jlalhfk kihejfbk.jfakhfk jigklhgk.jblkkbh",
            "igkglgkak.gljkch jkbgflkek.gjgjcj fkbkijeeh.ciilhi iggklgkah.cikihl",
            "klggkhggdk.ekkdh ffcjjlcjll.jghhj jigljhiglk.lkkdh ffciifckdj.egifl",
            "gikakfdkhjd.ikei fjdefigjhld.glli ljdifjejlih.gjlj ifeagidkjih.jhek",
            "kjhekjhbkglb.lif jgfklgibldef.igj khfhjllekdih.igb klhhjjhhkkib.lib",
            "glebijhlklhch.lg gkebikihgkjhk.jc ihjhkklhjhlhd.kc kliekkhflhhcd.if",
            "ihllhdlkjilhlg.d lgecgkicggjiji.l ihkhldkcjjehjg.d jieckhiggjiikk.l",
            "kghelgldkgidjkk. ghidgijhgkjliij. edjhkkkdlgeliik. ldidgjhljihdfii.",
        ],
    },
];
