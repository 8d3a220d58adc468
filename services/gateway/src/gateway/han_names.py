"""Chinese names that stand by themselves in a text: spaCy's English model knows none of them."""

import re
from collections.abc import Iterator

# The hundred most common surnames, in either script, which nine of ten people have; and the most common double ones.
_SURNAMES = (
    "王李張张劉刘陳陈楊杨黃黄趙赵吳吴周徐孫孙馬马朱胡郭何高林羅罗鄭郑梁謝谢宋唐許许韓韩馮冯鄧邓曹彭曾肖蕭萧田董袁潘"
    "於于蔣蒋蔡余杜葉叶程蘇苏魏呂吕丁任沈姚盧卢姜崔鍾钟譚谭陸陆汪範范金石廖賈贾夏韋韦付傅方白鄒邹孟熊秦邱江尹薛閻阎"
    "段雷侯龍龙史陶黎賀贺顧顾毛郝龔龚邵萬万錢钱嚴严覃武戴莫孔向湯汤"
)
_HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_NAME = re.compile(
    rf"(?<![{_HAN}])(?:(?:欧阳|歐陽|司马|司馬|上官|诸葛|諸葛)[{_HAN}]{{1,2}}|[{_SURNAMES}][{_HAN}]{{1,2}})(?![{_HAN}])"
)
_WORDS = "谢谢 謝謝 马上 馬上 高兴 高興 金额 金額 任何 白色 黄色 黃色 方便 万一 萬一 何时 何時 于是 於是"

_NO_NAMES = frozenset(_WORDS.split())


def han_names(text: str) -> Iterator[tuple[int, int]]:
    for found in _NAME.finditer(text):
        if found[0] not in _NO_NAMES:
            yield found.span()
