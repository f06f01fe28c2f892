"""Greetings, thanks and closings of letters, which say nothing about the subject of a text."""

from __future__ import annotations

import re
from functools import cache

from selfsent.lexical.analyzer import Analyzer, lower

_PHRASES = {
    "english": """hi | hi there | hello | hello there | hey | dear | dear all | dear team | hi team | hello team
        | hi all
        | hello all | hello everyone | hi everyone | dear sir | dear madam | dear sir or madam | to whom it may concern
        | greetings | good morning | good afternoon | good evening | good day | please | kindly | please help
        | please advise | please assist | kindly assist | could you please | please look into it
        | could you please look into it | thank | thanks | thank you | thank you so much
        | thank you very much | thank you in advance | thanks a lot | thanks in advance | many thanks | thx | cheers
        | regards | best regards | kind regards | kindest regards | warm regards | warmest regards | best wishes
        | all the best | with kind regards | with best regards | thanks and regards | many thanks and kind regards
        | sincerely | yours sincerely | sincerely yours | yours faithfully | yours truly | respectfully
        | let me know | please let me know | hope you are well | hope you are doing well
        | hope this email finds you well
        | hope this message finds you well | look forward to hearing from you | looking forward to hearing from you
        | looking forward to your reply | looking forward to your response | have a nice day | have a great day
        | have a good day | have a nice weekend | have a great weekend""",
    "german": """hallo | hallo zusammen | hi | hey | moin | servus | guten tag | guten morgen
        | guten abend | sehr geehrte damen und herren | sehr geehrte | sehr geehrter | bitte | danke | danke schön
        | vielen dank | vielen dank im voraus | danke im voraus | besten dank | herzlichen dank | gruß | grüße
        | viele grüße | liebe grüße | beste grüße | schöne grüße | freundliche grüße | freundlichen grüßen
        | mit freundlichen grüßen | mit freundlichem gruß | mit besten grüßen | hochachtungsvoll | mfg | lg | vg""",
    "french": """bonjour | bonsoir | salut | coucou | bonjour à tous
        | bonjour madame | bonjour monsieur | s'il vous plaît | s'il te plaît | svp | stp | merci | merci beaucoup
        | merci d'avance | merci par avance | cordialement | bien cordialement | bien à vous | salutations
        | meilleures salutations | sincères salutations | bonne journée | bonne soirée | veuillez agréer""",
    "spanish": """hola | hola a todos | buenas | buenos días | buenas tardes | buenas noches | estimado | estimada
        | estimados | estimados señores | por favor | gracias | muchas gracias | mil gracias
        | gracias de antemano | gracias por su ayuda | saludos | un saludo | saludos cordiales | un cordial saludo
        | atentamente | cordialmente""",
    "portuguese": """olá | oi | bom dia | boa tarde | boa noite | prezado | prezada | prezados
        | por favor | obrigado | obrigada | muito obrigado | muito obrigada | obrigado desde já | atenciosamente
        | cumprimentos | com os melhores cumprimentos | saudações | abraço | abraços""",
    "italian": """ciao | ciao a tutti | salve | buongiorno | buon giorno | buonasera | buona sera
        | per favore | per cortesia | grazie | grazie mille | molte grazie | grazie in anticipo
        | saluti | cordiali saluti | distinti saluti | cordialmente | buona giornata""",
    "dutch": """hallo | hoi | geachte | geachte heer | geachte mevrouw | goedemorgen | goedemiddag | goedenavond
        | goedendag | alstublieft | alsjeblieft | bedankt | alvast bedankt | dank u | dank je wel | hartelijk dank
        | groet | groeten | met vriendelijke groet | met vriendelijke groeten | mvg""",
    "swedish": """hej | hallå | god morgon | god dag | god kväll | snälla | vänligen | tack | tack så mycket
        | tack på förhand | hälsningar | med vänliga hälsningar | vänliga hälsningar | mvh""",
    "danish": """hej | goddag | god morgen | godaften | venligst | vær venlig | tak | mange tak | på forhånd tak
        | hilsen | hilsner | med venlig hilsen | venlig hilsen | mvh""",
    "norwegian": """hei | hallo | god morgen | god dag | god kveld | vennligst | vær så snill | takk | tusen takk
        | mange takk | på forhånd takk | hilsen | hilsener | med vennlig hilsen | vennlig hilsen | mvh""",
    "finnish": """hei | moi | terve | hyvää huomenta | hyvää päivää | hyvää iltaa | kiitos | kiitoksia
        | kiitos paljon | kiitos etukäteen | terveisin | ystävällisin terveisin | parhain terveisin """,
    "polish": """cześć | witam | dzień dobry | dobry wieczór | szanowni państwo | szanowny panie | szanowna pani
        | proszę
        | dziękuję | dzięki | z góry dziękuję | bardzo dziękuję | pozdrawiam | pozdrowienia | z poważaniem""",
    "czech": """ahoj | dobrý den | dobré ráno | dobrý večer | vážený | vážená | vážení | prosím | děkuji | děkuju | díky
        | předem děkuji | s pozdravem | zdravím""",
    "hungarian": """szia | sziasztok | helló | jó napot | jó reggelt | jó estét | tisztelt | kérem | köszönöm
        | köszi | előre is köszönöm | üdvözlettel | tisztelettel""",
    "romanian": """salut | bună | bună ziua | bună dimineața | bună seara | stimate | stimată | vă rog | te rog
        | mulțumesc | mulțumim | mersi | mulțumesc anticipat | cu stimă | o zi bună""",
    "turkish": """merhaba | merhabalar | selam | selamlar | günaydın | iyi günler | iyi akşamlar | sayın | lütfen
        | teşekkürler | teşekkür ederim | teşekkür ederiz | çok teşekkürler | şimdiden teşekkürler | saygılar
        | saygılarımla | saygılarımızla | iyi çalışmalar | kolay gelsin""",
    "indonesian": """halo | hai | selamat pagi | selamat siang | selamat sore | selamat malam | yth | mohon | tolong
        | terima kasih | terima kasih banyak | terima kasih sebelumnya | hormat saya""",
    "russian": """привет | здравствуйте | здравствуй | добрый день | доброе утро | добрый вечер | уважаемый | уважаемая
        | уважаемые | уважаемые коллеги | пожалуйста | спасибо | большое спасибо | заранее спасибо | благодарю
        | с уважением | с наилучшими пожеланиями""",
    "greek": """γεια | γεια σας | γεια σου | καλημέρα | καλησπέρα | χαίρετε | αγαπητέ | αγαπητή | αγαπητοί | παρακαλώ
        | ευχαριστώ | ευχαριστώ πολύ | ευχαριστώ εκ των προτέρων | με εκτίμηση | φιλικά""",
    "arabic": """مرحبا | أهلا | السلام عليكم | صباح الخير | مساء الخير | من فضلك | رجاء | شكرا | شكرا لك
        | شكرا جزيلا | مع التحية | تحياتي | مع أطيب التحيات""",
    "persian": """سلام | صبح بخیر | وقت بخیر | با سلام | لطفا | ممنون | متشکرم | با تشکر | سپاس | با احترام""",
    "hindi": """नमस्ते | नमस्कार | महोदय | कृपया | धन्यवाद | शुक्रिया | सादर""",
}
"""Of each language, as people write them; words with another sense, such as the German `liebe`, are left in."""


@cache
def _courtesies(language: str | None) -> re.Pattern[str]:
    known = "|".join(_PHRASES.get(name, "") for name in ("english", language or ""))
    phrases = {" ".join(phrase.split()) for phrase in known.split("|")} - {""}
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    said = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in longest_first).replace("'", "['’]")
    return re.compile(rf"(?<!\w)(?:{said})(?!\w)")


def without_courtesies(text: str, language: str | None = None) -> str:
    """A text in lower case without the greetings, thanks and closings of a language, and of English.

    Args:
        text: of any length.
        language: one of `LANGUAGES`.

    Examples:
        >>> without_courtesies("Hello team, the VPN drops. Many thanks in advance").split()
        [',', 'the', 'vpn', 'drops.', 'in', 'advance']
    """
    return _courtesies(language).sub(" ", lower(text, language))


def says_nothing(text: str, analyzer: Analyzer) -> bool:
    """Whether a text holds courtesies, and beside them stop words and numbers at most.

    Examples:
        >>> english = Analyzer("english")
        >>> says_nothing("Hi, please help! Thanks.", english), says_nothing("Hi, my screen is black", english)
        (True, False)
    """
    left = without_courtesies(text, analyzer.language)
    return left != lower(text, analyzer.language) and all(term.isdigit() for term in analyzer(left))
