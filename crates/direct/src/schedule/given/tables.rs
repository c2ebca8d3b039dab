//! The stored schedules: one row for each source, in it one word for each chunk of its share, in it one letter for each node.
//!
//! The letter says how the chunk comes to the node: `a` in the first step over its first in-link, by increasing tail, then the
//! other in-links, then those in the second step, and so on; `.` is the source itself. Solutions of a 0/1 program that allows
//! a link no more in any step than makes the bandwidth optimal, found once; whether they are right is tested each
//! time one is used.

use super::Table;

pub(super) const TABLES: [Table; 8] = [
    // The diamond: 3 steps, 7/8.
    Table {
        degree: 2,
        rows: &[
            ".ffadeea .ffadeea",
            "a.deedfb a.dcfdfb",
            "fa.faccf ca.eacfe",
            "cbf.bfed ebe.bfcd",
            "decd.aae decd.aae",
            "fdebf.bf fdebf.bf",
            "beaece.c bfaccf.c",
            "ecbfebd. ecbfebd.",
        ],
    },
    // The diamond's reverse: 3 steps, 7/8.
    Table {
        degree: 2,
        rows: &[
            ".aceedae .aceedaf",
            "e.aafcde c.aaecfe",
            "fd.fdfba fd.edfba",
            "acf.caef ace.caef",
            "efbb.efc cebb.fdc",
            "dedfa.eb dedda.fb",
            "ffffbb.d effdbb.d",
            "bbecfec. bbecfec.",
        ],
    },
    // The modified de Bruijn graph of d = 2, n = 3: 4 steps, 7/8.
    Table {
        degree: 2,
        rows: &[
            ".aacegee .aaggchf",
            "h.bachfc g.baeech",
            "eh.daaee eh.faahf",
            "deh.fhaa hfh.dfaa",
            "abce.egg abde.ggg",
            "fggbf.db fggbh.fb",
            "cfehbb.d gdffbb.h",
            "beehhdb. bcfggfb.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 2,
        rows: &[
            ".gedaega .gcgadfa",
            "a.gebgcg a.gfbfhc",
            "ba.hchee ba.hehge",
            "ebf.fafh cbe.daeg",
            "fhae.gaf heac.eah",
            "debfe.bd gcbgf.bf",
            "hffahc.b edhagf.b",
            "fhdbgbd. gfhbhbh.",
        ],
    },
    // The modified de Bruijn graph of d = 2, n = 4: 5 steps, 15/16.
    Table {
        degree: 2,
        rows: &[
            ".acciaehjjjeggii .aecgahfiigcjjgj",
            "i.aaefcegiggjjgj j.aaedicgigihheg",
            "eg.habficcccighf ij.fabiggccijjhf",
            "hij.jiaajhhjfccc fgi.jgaajjhhgefc",
            "ehff.hggaaiiiiii cgid.ejeaaigjjgi",
            "hijjd.fdigaaihee ghiid.jjeeaajjfd",
            "jhfhhh.iddfjaajh jfggfj.fdgddaajg",
            "deggiei.jjjihhaa deggigh.hhjffdaa",
            "abiehcgj.iegiijh abcigchh.iieiiii",
            "ijbbchccg.jjegjg gibbcdeie.ejggjh",
            "gfggbiiicg.jhhdb hihhbjiije.hhfdb",
            "gjjjjibbfhh.cccj jjhhijbbhfj.cegg",
            "idddifggbbgg.iij cddeggggbbii.iii",
            "hijjhiddhhbbe.he fgjjfgdhigbbg.hd",
            "ihhijjhjffhdbb.j jjhjjjjhhddfbb.h",
            "bceighjjijihdfb. bciihijjijfhddb.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 2,
        rows: &[
            ".jhggeedajdgcjia .igfchjdajjfchga",
            "a.gheijfbifhggjc a.ghcijfbiehggjc",
            "ga.ggjeidaigdjgi ca.idigjgagifiig",
            "gbi.dgigdbejdgei cbi.hiihebhjgiie",
            "ecai.jfihiagichi gcaj.ihgicajhcfj",
            "bibie.gjcigieiig bgbii.ghcchieige",
            "edgafh.jfdgahfjg idiagj.jfjiagdfh",
            "hjhbfdi.idgbfjii fjhbidj.gjjbidhg",
            "jicgagci.gceahgj igeiajcj.gjeahch",
            "igehbjiej.ihbjcj gecjbgggi.cjbeeh",
            "jedjjadhhe.ihadf jhjejadijh.ijahj",
            "dgfhgbheegi.jbdi djdghbfigei.ibhj",
            "ihjfjfacjhhc.iaf ihichhacjfhf.jad",
            "hfjcifbghhjcj.bh jhjejgbhjhfgj.bd",
            "jfjdihjahjjdih.b hjidheiaifdhhg.b",
            "fihjichbgibjiej. hifjjchbigbdjfj.",
        ],
    },
    // The modified de Bruijn graph of d = 4, n = 2: 3 steps, 15/16.
    Table {
        degree: 4,
        rows: &[
            ".eeaafijkiifljjf .aaijejejjelilke .eafikikjeeejiil .aeaafjjklifkeej",
            "k.lkfafalflkhhfa k.gjleaeekflhhla l.gjkeaaefkgelle i.jkfaefljlkllfe",
            "kj.flgjggakafflh ll.bllkljeeijelf jj.bjglgfaajflef jj.fklkhfeaakfik",
            "hik.hhgjkljfkahb llk.lkhkjhhlleaf hkl.llklhkhbhhab lhj.hhliglkbgaeh",
            "aejc.bffkljfiiej aibe.fjjkiiekjjl eibg.bffkjjeijjl elfc.fjjkiifkeij",
            "eifgb.bfkjfgiifj ijjgb.lkhhkjjibj kkklj.hbhfkkelbg lkjkf.bbekflekjg",
            "fiklik.hagbhkjkl jlllll.lekfcgflh jlcfkl.hfgbcjfkk jfcfkk.kaegjjiij",
            "ikhjgjk.lbiiaggk glhillk.ljliahgc hkjigjh.ibjkhkcc jkllkkh.hfkkekck",
            "bbeeejie.jgjiiki ffidiiil.kgjlelf lbkhjeek.gchljie beideilh.gchijei",
            "eiigccfgi.jjfkkj eifkcflcl.lijlgg ggjifcfgi.lkbkfk ighkgklcl.libkgi",
            "lflhkiidbg.lelkg jjlljgjhgc.dgkkk iljkggjkfc.dgflh fjilkkldbf.lllgg",
            "hiiljhgjglj.lbhd gghjiliigik.cglh jjlhllllclg.cghd khkhhjglckg.gbii",
            "cgdeejkkjeee.gii cceeeieeijij.iki gchijhejiiii.cji kkdjhhjjjkee.cjl",
            "idkkfdeeijjki.jk ilfjddgfiliii.fk ldgkhecieikgk.je ihfgdjciiifgk.ij",
            "kjglgjdkhdlgfj.l kkgjjgdgfddhfk.l ffiiiiiidhdhjj.l ffkhiihldhhkji.i",
            "ghlikkiljhhlddd. deieiikillljhhh. hgiiiikijkhldgd. dhejejgilijildh.",
        ],
    },
    // Its reverse: the same.
    Table {
        degree: 4,
        rows: &[
            ".hihekfhakieiiia .ilkaelkajfeeffj .lliekjfeljhajja .kjjaklfieifafkj",
            "e.ifkklfihkfbakj e.llilffbkifblff a.ifeijjeijkeajg a.klejfjbiflfiie",
            "bf.lejaleijlijje bi.lbejleljlgjje hl.ibielihlfcjkf ff.likafjhklchef",
            "hie.ceficefeifii cia.ceeigekjelij lja.fiejgljigjij cll.ilflclfeelfe",
            "hefj.aiejaikifgi lkff.liekagjhbgl dejj.ajjeekjefje dlli.ellielgibkg",
            "lakkh.kifbgilegk hejid.lijfkgickk iejfk.kelbgjhcgg hajjd.jiffjkjgji",
            "ebliif.jjjlgfdeg iflfhb.jjfkghdik kljghb.lkfkklgah ebigih.gijilfeah",
            "lkkjhck.lcgklglk icfjlgi.fceijekk lekjhcg.hgaklglk ecjjijg.jgajfehj",
            "jkhilhjg.kbakkbl ifkklfbk.jfklhfk jihekhik.jlakkbl ifgklfbk.jbelhek",
            "flbllhiei.ilikch jjfkjjgih.ciklhl lgblfikal.gljich jkgklgkah.cikkhl",
            "kkggjjcgdk.klhdl jigkjfckhj.ikhel fkcgileghl.jgldi ljckflgjdl.jgjfl",
            "gjgaglgkkid.klhi fjdifiejill.gjij giiagfdkkid.ikhi fjdifldklih.klei",
            "kliekjhildhb.llf jihejghbkglb.kij ihfljliejdij.igb kgihkglbklef.klb",
            "llebgiiighlgd.kg jjhejjhllhhcd.lf jjhhjkhhlkhch.lc ihlbgilhgijhh.jc",
            "kgkglhkclkeljk.h ghecidlhifkhji.d gkecjdiggjiilg.i kgihkkkckkehji.d",
            "kdjhkkjdfglhfek. ghkdkjhhjkhdjil. igkelgkdkgedjil. kdedgijlfijikjj.",
        ],
    },
];
